"""How alike texts are, and that alike ones share a band."""

import random
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from trapline.store import likeness

SITE = UUID(int=7)
RANDOM = random.Random(11)
VOCABULARY = [f"word{number}" for number in range(3000)]


def text_of(words: int, seed: int) -> list[str]:
    return random.Random(seed).choices(VOCABULARY, k=words)


def edited(words: list[str], edits: int, seed: int) -> list[str]:
    chosen = random.Random(seed)
    copy = list(words)
    for place in chosen.sample(range(len(copy)), edits):
        copy[place] = f"other{chosen.random()}"
    return copy


def alike(one: list[str], other: list[str]) -> int:
    return likeness.similarity(likeness.features(one), likeness.features(other))


def shared_bands(one: list[str], other: list[str]) -> set[int]:
    def bands(words: list[str]) -> set[int]:
        return set(likeness.bands(SITE, likeness.signature(likeness.features(words))))

    return bands(one) & bands(other)


def test_the_same_is_100_and_nothing_else_is() -> None:
    words = text_of(400, 1)
    assert alike(words, words) == 100
    assert alike(words, edited(words, 1, 2)) < 100
    assert alike(words, text_of(400, 3)) == 0
    assert likeness.similarity(set(), set()) == 0


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
        one, two = (likeness.signature(likeness.features(w)) for w in (words, other))
        assert abs(likeness.estimate(one, two) - alike(words, other)) <= 15


def test_sites_share_no_bands() -> None:
    signature = likeness.signature(likeness.features(text_of(300, 1)))
    mine, theirs = (set(likeness.bands(uuid4(), signature)) for _ in range(2))
    assert not mine & theirs


def test_short_texts_are_like_nothing_and_middling_ones_need_one_title() -> None:
    assert not likeness.may_be_alike(24, "Same", "Same")
    assert likeness.may_be_alike(60, "Same  title", "same TITLE")
    assert not likeness.may_be_alike(60, "One", "Another")
    assert not likeness.may_be_alike(60, "One", None)
    assert likeness.may_be_alike(400, "One", "One, to print")
    assert likeness.may_be_alike(400, "One", None)
    assert not likeness.may_be_alike(400, "One", "Another")
    assert not likeness.may_be_alike(400, "Article 1 | Site", "Article 2 | Site")


def test_scripts_without_spaces_are_compared_too() -> None:
    text = "".join(RANDOM.choices("的一是不了人我在有他这为之大来以个中上们", k=800))
    words, near = likeness.words_of(text), likeness.words_of(text[:400] + "変" + text[401:])
    assert len(words) > likeness.FEWEST_WORDS
    assert 95 <= alike(words, near) < 100
    assert shared_bands(words, near)


@given(st.text(max_size=300))
def test_any_text_has_words_features_and_bands(text: str) -> None:
    words = likeness.words_of(text)
    found = likeness.features(words)
    assert bool(found) == bool(words)
    if found:
        bands = likeness.bands(SITE, likeness.signature(found))
        assert len(bands) == likeness.BANDS
        assert all(-(2**63) <= band < 2**63 for band in bands)
