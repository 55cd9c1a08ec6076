"""How alike texts are, and that alike ones share a band."""

import hashlib
import random
import re
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from trapline.store import similarity
from trapline.store.similarity import Hashes

SITE = UUID(int=7)
RANDOM = random.Random(11)
STORED = [
    2589352688681550292, 5001680598162673505, 12104281083612178159, 17780945063215295933
]  # fmt: skip
STORED_SIGNATURE = "a906c0f1b8fa5306"
VOCABULARY = [f"word{number}" for number in range(3000)]


def text_of(words: int, seed: int) -> list[str]:
    return random.Random(seed).choices(VOCABULARY, k=words)


def features_of(words: list[str]) -> Hashes:
    return similarity.features(similarity.words_of(" ".join(words)))


def edited(words: list[str], edits: int, seed: int) -> list[str]:
    chosen = random.Random(seed)
    copy = list(words)
    for place in chosen.sample(range(len(copy)), edits):
        copy[place] = f"other{chosen.random()}"
    return copy


def alike(one: list[str], other: list[str]) -> int:
    return similarity.similarity(features_of(one), features_of(other))


def shared_bands(one: list[str], other: list[str]) -> set[int]:
    def bands(words: list[str]) -> set[int]:
        return set(similarity.bands(SITE, similarity.signature(features_of(words))))

    return bands(one) & bands(other)


def test_the_same_is_100_and_nothing_else_is() -> None:
    words = text_of(400, 1)
    assert alike(words, words) == 100
    assert alike(words, edited(words, 1, 2)) < 100
    assert alike(words, text_of(400, 3)) == 0
    assert similarity.similarity(features_of([]), features_of([])) == 0
    assert similarity.similarity(features_of(words), features_of([])) == 0


def test_what_is_alike_shares_a_band_and_what_is_not_does_not() -> None:
    for seed in range(100):
        words = text_of(600, seed)
        near = edited(words, 4, seed)
        assert alike(words, near) >= 95
        assert shared_bands(words, near), seed
        assert not shared_bands(words, text_of(600, seed + 1000))


def test_an_estimate_is_near_the_truth() -> None:
    for edits in (0, 5, 20, 60):
        words = text_of(500, edits)
        other = edited(words, edits, 5)
        one, two = (similarity.signature(features_of(w)) for w in (words, other))
        assert abs(similarity.estimate(one, two) - alike(words, other)) <= 15


def test_a_band_is_a_keyed_hash_of_its_rows() -> None:
    signature = similarity.signature(features_of(text_of(600, 7)))
    size = len(signature) // similarity.BANDS
    assert size == 4 * similarity.ROWS
    assert similarity.bands(SITE, signature) == [
        int.from_bytes(
            hashlib.blake2b(
                signature[band * size : (band + 1) * size],
                digest_size=8,
                key=SITE.bytes,
                salt=bytes([band]),
            ).digest(),
            signed=True,
        )
        for band in range(similarity.BANDS)
    ]


def test_sites_share_no_bands() -> None:
    signature = similarity.signature(features_of(text_of(300, 1)))
    mine, theirs = (set(similarity.bands(uuid4(), signature)) for _ in range(2))
    assert not mine & theirs


def test_short_texts_are_like_nothing_and_middling_ones_need_one_title() -> None:
    assert not similarity.may_be_duplicates(24, "Same", "Same")
    assert similarity.may_be_duplicates(60, "Same  title", "same TITLE")
    assert not similarity.may_be_duplicates(60, "One", "Another")
    assert not similarity.may_be_duplicates(60, "One", None)
    assert similarity.may_be_duplicates(400, "One", "One, to print")
    assert similarity.may_be_duplicates(400, "One", None)
    assert not similarity.may_be_duplicates(400, "One", "Another")
    assert not similarity.may_be_duplicates(400, "Article 1 | Site", "Article 2 | Site")


def test_scripts_without_spaces_are_compared_too() -> None:
    text = "".join(RANDOM.choices("的一是不了人我在有他这为之大来以个中上们", k=800))
    near = text[:400] + "変" + text[401:]
    assert len(similarity.words_of(text)) > similarity.FEWEST_WORDS
    assert 95 <= alike([text], [near]) < 100
    assert shared_bands([text], [near])


@given(st.text(max_size=300), st.text(max_size=300))
def test_words_are_the_same_where_their_letters_are(one: str, other: str) -> None:
    known: dict[str, int] = {}
    for text in (one, other):
        # Single letters have single lower cases; with spaces around them nothing is a long run.
        parts = re.findall(r"\w+", "".join(letter.lower()[0] for letter in text))
        words = [part for part in parts for part in (part[:8], part[8:16]) if part]
        numbers = similarity.words_of(" . ".join(words)).tolist()
        assert len(numbers) == len(words)
        for word, number in zip(words, numbers, strict=True):
            assert known.setdefault(word, number) == number
    assert len(set(known.values())) == len(known)


def test_case_and_marks_make_no_difference_and_the_order_does() -> None:
    one, other = "One two, three four: FIVE", "one TWO three (four) five"
    assert alike([one], [other]) == 100
    assert alike([one], ["five four three two one"]) == 0
    assert alike(["ab cd"], ["abcd"]) == 0


def test_what_was_stored_is_found_again() -> None:
    """The numbers are in databases: whoever changes them changes `ALGORITHM` with them."""
    found = features_of(["Straße", "ÜBER", "𐐀", "the_quick", "狐", "42"])
    assert similarity.ALGORITHM == 202
    assert found.tolist() == STORED
    assert similarity.signature(found)[:8].hex() == STORED_SIGNATURE


@given(st.text(max_size=300))
def test_any_text_has_words_features_and_bands(text: str) -> None:
    words = similarity.words_of(text)
    found = similarity.features(words)
    assert bool(len(found)) == bool(len(words))
    assert len(words) == 0 or any(letter.isalnum() or letter == "_" for letter in text)
    if len(found):
        bands = similarity.bands(SITE, similarity.signature(found))
        assert len(bands) == similarity.BANDS
        assert all(-(2**63) <= band < 2**63 for band in bands)
