"""What the signs in a query mean, and that no way to write one fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.knowledge.query_syntax import ParsedQuery, QueryPart, parse


def word(text: str) -> QueryPart:
    return QueryPart(text, phrase=False)


def phrase(text: str) -> QueryPart:
    return QueryPart(text, phrase=True)


FOX, DOG, CAT = word("fox"), word("dog"), word("cat")
RED = phrase("red fox")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ('"red fox" night', ParsedQuery("red fox night", ((RED,),))),
        ("“red fox”", ParsedQuery("red fox", ((RED,),))),
        ('"red fox" "dog"', ParsedQuery("red fox dog", ((RED,), (phrase("dog"),)))),
        ('"red fox" OR dog', ParsedQuery("red fox dog", ((RED, DOG),))),
        ("(fox OR dog) night", ParsedQuery("fox dog night", ((FOX, DOG),))),
        ("fox OR dog OR cat", ParsedQuery("fox dog cat", ((FOX, DOG, CAT),))),
        ("fox AND dog night", ParsedQuery("fox dog night", ((FOX,), (DOG,)))),
        ("fox AND (dog OR cat)", ParsedQuery("fox dog cat", ((FOX,), (DOG, CAT)))),
        ("+fox dog", ParsedQuery("fox dog", ((FOX,),))),
        ("fox -dog", ParsedQuery("fox", (), (DOG,))),
        ("fox NOT dog", ParsedQuery("fox", (), (DOG,))),
        ('fox -"red fox"', ParsedQuery("fox", (), (RED,))),
        ('fox -(dog OR "red fox")', ParsedQuery("fox", (), (DOG, RED))),
        ("-point-in-time fox", ParsedQuery("fox", (), (phrase("point-in-time"),))),
        ("-dog", ParsedQuery("", (), (DOG,))),
    ],
)
def test_signs(query: str, asked: ParsedQuery) -> None:
    assert parse(query) == asked


@pytest.mark.parametrize(
    "query",
    [
        '"red fox',
        'a 5" pipe',
        "fox OR",
        "OR fox",
        "AND AND fox",
        "- fox",
        "exit -1",
        "git commit --amend",
        "f(-x)",
        '""',
        "-",
        "+",
        "()",
        "-(",
        "READ OR WRITE LOCK",
        "fox or dog and cat",
        "point-in-time recovery",
        "C++ templates",
    ],
)
def test_what_is_no_sign_is_words(query: str) -> None:
    assert parse(query) == ParsedQuery(query)


@given(st.lists(st.sampled_from([*"ab -+\"'()“”«»\t", " OR ", " AND ", " NOT ", "日本"])))
def test_any_text_can_be_read(pieces: list[str]) -> None:
    asked = parse("".join(pieces))
    assert all(part.words.strip() for group in asked.required for part in group)
    assert all(part.words.strip() for part in asked.excluded)
