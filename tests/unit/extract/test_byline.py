"""What is around a headline is read only where it can tell something, and alike by compiled code."""

import pytest
import turbohtml
from hypothesis import given
from hypothesis import strategies as st

from trapline.extract import _native, byline

LINES = st.one_of(
    st.text(max_size=12),
    st.tuples(
        st.sampled_from(["", " ", "\u00a0", "\x1c", "\n", "x"]),
        st.sampled_from(
            ["by", "BY", "Written", "wr\u0131tten", "wr\u0130tten", "\u017ftarted", "po\u017fted", "starte", "b"]
        ),
        st.sampled_from(["", " Ann", "\u00e9"]),
    ).map("".join),
    st.lists(st.sampled_from(["2", "20", "\u0661\u0662", "\u00b2", " ", "-"]), max_size=5).map("".join),
)  # fmt: skip


@given(st.lists(LINES, max_size=4))
def test_told_alike(texts: list[str]) -> None:
    assert _native.may_tell(texts) is byline.may_tell_in_python(texts)


@pytest.mark.parametrize("texts", [None, ("by",), [b"by"], ["a", None]])
def test_what_is_no_text_is_refused(texts: object) -> None:
    with pytest.raises(TypeError):
        _native.may_tell(texts)  # type: ignore[arg-type]


def lines(*parts: str) -> list[str]:
    body = "".join(f"<p>{part}</p>" for part in parts)
    tree = turbohtml.parse(f"<div><div><h1>The title</h1>{body}</div></div>")
    return byline.headline_lines(tree)


def test_lines_are_given_where_one_begins_with_an_author() -> None:
    assert lines("Section", "Posted\n by", "Ann Lee", "title") == [
        "Section",
        "Posted by",
        "Ann Lee",
    ]


def test_lines_are_given_where_one_has_a_year() -> None:
    assert lines("on May 17th, 2024", "Section") == ["on May 17th, 2024", "Section"]


def test_none_are_given_where_nothing_could_be_told() -> None:
    assert lines("Section", "May 17th", "standby") == []
