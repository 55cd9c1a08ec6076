"""Common words are counted alike by the compiled code and by Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.extract import _native, language

ENGLISH = ("the", "and", "to", "which")
TEXTS = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(["the", "The", "THE", "and,", "to", "\u212a", "\u0130", "whicht", "which", "th\u00e9"]),
        max_size=20,
    ).flatmap(lambda words: st.sampled_from([" ", "\n", "\u00a0", "\u2003", "\x1c", ""]).map(lambda gap: gap.join(words))),
)  # fmt: skip


@given(TEXTS, st.integers(-3, 60))
def test_counted_alike(text: str, letters: int) -> None:
    letters = max(letters, 0)
    expected = language.common_words_in_python(text, letters, ENGLISH)
    assert _native.common_words(text, letters, ENGLISH) == expected


@pytest.mark.parametrize(
    "given_",
    [
        ("a", 1), (b"a", 1, ()), ("a", "b", ()), ("a", 1, ["the"]), ("a", 1, ("",)), ("a", 1, ("The",)),
        ("a", 1, ("x" * 9,)), ("a", 1, ("x",) * 65), ("a", 1, (1,)), ("a", 1, ("\u00e4",)),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused(given_: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        _native.common_words(*given_)  # type: ignore[arg-type]


def test_a_text_that_begins_with_contents_is_looked_at_further() -> None:
    """Without the detector: it would take ten times as long to say the same."""
    contents = "1.1. Index Types\nChapter 11. Indexes\n" * 28
    prose = (
        "It is the kind of index that you get by default and which is right with most of them. "
        * 23
    )
    assert not language._is_plainly_english(contents)
    assert language._is_plainly_english(contents + prose)
