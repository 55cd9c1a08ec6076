"""What the signs in a query mean, and that no way to write one fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.knowledge.asking import Asked, Part, read


def word(text: str) -> Part:
    return Part(text, phrase=False)


def phrase(text: str) -> Part:
    return Part(text, phrase=True)


FOX, DOG, CAT = word("fox"), word("dog"), word("cat")
RED = phrase("red fox")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ('"red fox" night', Asked("red fox night", ((RED,),))),
        ("“red fox”", Asked("red fox", ((RED,),))),
        ('"red fox" "dog"', Asked("red fox dog", ((RED,), (phrase("dog"),)))),
        ('"red fox" OR dog', Asked("red fox dog", ((RED, DOG),))),
        ("(fox OR dog) night", Asked("fox dog night", ((FOX, DOG),))),
        ("fox OR dog OR cat", Asked("fox dog cat", ((FOX, DOG, CAT),))),
        ("fox AND dog night", Asked("fox dog night", ((FOX,), (DOG,)))),
        ("fox AND (dog OR cat)", Asked("fox dog cat", ((FOX,), (DOG, CAT)))),
        ("+fox dog", Asked("fox dog", ((FOX,),))),
        ("fox -dog", Asked("fox", (), (DOG,))),
        ("fox NOT dog", Asked("fox", (), (DOG,))),
        ('fox -"red fox"', Asked("fox", (), (RED,))),
        ('fox -(dog OR "red fox")', Asked("fox", (), (DOG, RED))),
        ("-point-in-time fox", Asked("fox", (), (phrase("point-in-time"),))),
        ("-dog", Asked("", (), (DOG,))),
    ],
)
def test_signs(query: str, asked: Asked) -> None:
    assert read(query) == asked


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
    assert read(query) == Asked(query)


@given(st.lists(st.sampled_from([*"ab -+\"'()“”«»\t", " OR ", " AND ", " NOT ", "日本"])))
def test_any_text_can_be_read(pieces: list[str]) -> None:
    asked = read("".join(pieces))
    assert all(part.words.strip() for group in asked.required for part in group)
    assert all(part.words.strip() for part in asked.excluded)
