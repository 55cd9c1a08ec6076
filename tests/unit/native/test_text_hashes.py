"""What is compiled of the store gives the same bits as Python, for every letter there is."""

import hashlib
import random
import sys
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pure_python import needs_native, pure_python
from trapline import native
from trapline.store import content_hash, similarity

pytestmark = needs_native

numpy_similarity = pure_python("trapline.store.similarity")

LETTERS = [chr(code) for code in range(sys.maxunicode + 1)]
TEXTS = {
    "nothing": "",
    "no words": " .,;\n ",
    "one word": "word",
    "two words": "two words",
    "one letter": "狐",
    "few letters": "狐狸",
    "every letter, as a word": " ".join(LETTERS),
    "every letter, in one": "".join(LETTERS),
    "as many words as count": "a " * 49_999 + "b c d",
    "a word as long as the powers and longer": "x" * 255 + " " + "y" * 256 + " " + "z" * 600 + " a" * 99,
    "barely words": "a" * 16 + " " + "b" * 16,
    "barely none": "a" * 17 + " " + "b" * 16,
    "runs after the last word that counts": "a" * 40 + " b" * 49_999 + "." + "c" * 900_000,
    "long runs": "".join(random.Random(3).choices("的一是不了人我在有他", k=5_000)),
}  # fmt: skip
ANY_TEXT = st.text(
    st.characters() | st.sampled_from(" aA\xe9\u2019\u2014\u2028\x85\x1c\u0301\xc5\ud800"),
    max_size=200,
)


def assert_same_numbers(text: str) -> None:
    words = numpy_similarity.words_of(text)
    assert similarity.words_of(text).tobytes() == words.tobytes()
    if len(words):
        sequences = similarity._sequences(words)
        assert numpy_similarity.features(words).tolist() == sorted(set(sequences.tolist()))
        assert (
            bytes(native.library.text_features(words)) == numpy_similarity.features(words).tobytes()
        )


def assert_same_hash(text: str) -> None:
    found = content_hash.squeezed_if_composed(text)
    assert found is None or found == content_hash.squeezed(text)
    expected = hashlib.sha256(content_hash.squeezed(text)).digest()
    assert content_hash.content_hash(text) == expected


SPACED = st.lists(
    st.sampled_from(
        ["a", "words of it", "x" * 17, " ", "\n", "  ", "\t", "\x00", "\x1c", "\x7f", "\xa0", "\xe9", "\u2014", "\u3000", "\u8000"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(SPACED)
def test_spaces_are_squeezed_alike_wherever_they_stand(text: str) -> None:
    assert content_hash.squeezed_if_composed(text) == content_hash.squeezed(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_have_the_same_numbers(text: str) -> None:
    assert_same_numbers(text)


@given(ANY_TEXT)
def test_any_text_has_the_same_numbers(text: str) -> None:
    assert_same_numbers(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_have_the_same_hash(text: str) -> None:
    assert_same_hash(text)


@given(ANY_TEXT)
def test_any_text_has_the_same_hash(text: str) -> None:
    assert_same_hash(text)


def test_every_letter_is_squeezed_the_same_way_or_left_alone() -> None:
    squeezed = [
        letter for letter in LETTERS if content_hash.squeezed_if_composed(letter) is not None
    ]
    assert len(squeezed) > 30_000
    parts = [unicodedata.decomposition(letter).split() for letter in LETTERS]
    joining = {
        chr(int(part, 16)) for pair in parts if "<" not in "".join(pair) for part in pair[1:]
    }
    # What joins with the letter before it: none of these does, so none changes beside another.
    assert joining.isdisjoint(squeezed)
    assert not any(map(unicodedata.combining, squeezed))
    for letter in squeezed:
        # Beside others too: what combines with the letter before it must be left alone.
        for text in (letter, f" a{letter}  {letter}e{letter}", letter * 3):
            assert content_hash.squeezed_if_composed(text) == content_hash.squeezed(text), hex(
                ord(letter)
            )


@pytest.mark.parametrize("function", [similarity.words_of, content_hash.squeezed_if_composed])
def test_what_is_no_text_is_refused(function: Callable[[object], object]) -> None:
    for wrong in (None, b"bytes", 3, ["list"]):
        with pytest.raises(TypeError):
            function(wrong)


def test_what_are_no_words_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        native.library.text_features(np.zeros(9, dtype=np.uint8))
    with pytest.raises(TypeError):
        native.library.text_features("text")  # type: ignore[arg-type]
    assert bytes(native.library.text_features(np.zeros(0, dtype=np.uint64))) == b""
    assert len(similarity.features(np.zeros(0, dtype=np.uint64))) == 0


@given(
    st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), max_size=60),
    st.sampled_from([1, 3, 40, 400]),
)
def test_features_are_in_order_however_the_words_fall(numbers: list[int], times: int) -> None:
    words = np.array(numbers * times, dtype=np.uint64)
    expected = numpy_similarity.features(words).tobytes()
    assert similarity.features(words).tobytes() == expected


def test_features_that_begin_alike_are_sorted_too() -> None:
    """As somebody can make them who wants the sort to take for ever."""
    pool = np.random.default_rng(5).integers(0, 2**63, 40_000, dtype=np.uint64)
    made = pool[:2]
    for _ in range(200):
        before = (made[-2:] * similarity._POWERS[:2]).sum()
        sums = pool * similarity._POWERS[2:3] + np.full(1, before)
        made = np.append(made, pool[np.argmin(similarity._mixed(sums))])
    sequences = similarity._sequences(made)
    assert (sequences >> np.uint64(56)).max() == 0
    assert bytes(native.library.text_features(made)) == numpy_similarity.features(made).tobytes()
