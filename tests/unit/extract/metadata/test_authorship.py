"""The lines around a headline are read only where they can name an author or a date."""

import turbohtml

from trapline.extract.metadata import authorship


def lines(*parts: str) -> list[str]:
    body = "".join(f"<p>{part}</p>" for part in parts)
    tree = turbohtml.parse(f"<div><div><h1>The title</h1>{body}</div></div>")
    return authorship.headline_lines(tree)


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
