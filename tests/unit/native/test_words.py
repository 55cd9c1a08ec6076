"""Both readers find the same words, in every alphabet, and know the same ones."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest
import turbohtml

from tests.support.pure_python import needs_native
from trapline import native
from trapline.extract.html.outline import read_outline
from trapline.extract.main_content import scorer
from trapline.extract.main_content.model_input import read_page
from trapline.extract.main_content.vocabulary import Vocabulary
from trapline.extract.metadata.page_type_hints import read_hints

pytestmark = needs_native

URL = "https://example.com/"
CLOSE = 1e-6
# Of one, two and four bytes in memory; two whose lower case Python alone knows, one whose is ASCII, and
# one whose last byte is that of a blank.
LETTERS = (
    "aBz09_",
    "aäÖß9µ",
    "a\u03a3\u03c3\u039f\u0130\u0120łЖ漢\u2003\u212a",
    "aB\U0001f600\U00010400\ud800",
)
MARKS = (" ", "  ", ".", "-", "—", "\u00a0", "\x1c", "=", "'")
SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 64, 70)


def some_words(chance: random.Random, letters: str, count: int) -> list[str]:
    return ["".join(chance.choices(letters, k=chance.choice(SIZES))) for _ in range(count)]


def some_text(chance: random.Random, words: list[str], most: int) -> str:
    count = chance.randrange(1, most)
    return "".join(chance.choice(words) + chance.choice(MARKS) for _ in range(count))


def some_scores(chance: random.Random, words: list[str]) -> dict[str, float]:
    """Of words as they are, in lower case, and of phrases of them, some for nothing."""
    phrases = [f"={' '.join(chance.choices(words, k=size)).lower()}" for size in (1, 2, 3)]
    parts = [part for word in words for part in re.findall(r"\w+|[a-z]+", word.lower())]
    known = [*words, *(word.lower() for word in words), *parts, *phrases, ""]
    return {word: chance.choice((0.0, 0.5, -1.25, 3.0)) for word in known}


@pytest.mark.parametrize("letters", LETTERS)
@pytest.mark.parametrize("seed", range(8))
def test_words_score_alike(letters: str, seed: int) -> None:
    chance = random.Random(seed)
    words = some_words(chance, letters, 12)
    scores = [some_scores(chance, words) for _ in range(4)]
    model = replace(scorer.shipped_scorer(), vocabulary=Vocabulary.of(*scores))
    texts = [some_text(chance, words, most) for most in (3, 4, 14, 60) for _ in range(6)]
    names = [some_text(chance, words, 4).replace("'", "") for _ in texts]
    parts = [
        f"<{tag} class='{name}' id='{name[:5]}'>{text}</{tag}>"
        for text, name in zip(texts, names, strict=True)
        for tag in chance.choices(("p", "h2", "div"), k=2)
    ]
    title = f"<title>{some_text(chance, words, 9)}</title>"
    tree = turbohtml.parse(title + "".join(parts), positions=False)
    said = read_hints(tree, URL)
    reading = read_page(read_outline(tree), said)
    expected = reading.features(model.vocabulary)
    found = model.features(read_outline(tree), said)
    columns = [*reading.columns, *reading.word_columns(model.vocabulary)]
    wrong = np.abs(found.matrix - expected.matrix).max(axis=0) > CLOSE
    assert [name for name, differs in zip(columns, wrong, strict=True) if differs] == []
    assert reading.word_columns(model.vocabulary)["text_mean"].any()


def test_only_two_letters_are_lowered_by_python() -> None:
    """What the compiled reader takes for granted: one letter becomes one, whatever is beside it."""
    everything = [chr(point) for point in range(0x110000)]
    assert [letter for letter in everything if len(letter.lower()) != 1] == ["\u0130"]
    apart = [letter for letter in everything if f"a{letter}".lower() != f"a{letter.lower()}"]
    assert apart == ["\u03a3"]


def test_a_lexicon_of_anything_but_words() -> None:
    for scores in ({1: 1.0}, {"a": "b"}, {"a": None}):
        with pytest.raises(TypeError):
            native.library.lexicon(scores)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="longer than any"):
        native.library.lexicon({"x" * 1024: 1.0})
    native.library.lexicon({"x" * 1023: 1.0})


def test_as_many_scores_as_words() -> None:
    """Training has them before they are rounded."""
    words = {f"word{number}": number / 7 for number in range(1, 5_000)}
    none: dict[str, float] = {}
    model = replace(scorer.shipped_scorer(), vocabulary=Vocabulary.of(none, words, none, none))
    tree = turbohtml.parse("".join(f"<p>word{number}" for number in range(1, 5_000, 71)))
    found = model.features(read_outline(tree), read_hints(tree, URL))
    column = [*_columns(model, tree)].index("text_mean")
    assert np.allclose(found.matrix[:, column], np.arange(1, 5_000, 71) / 7)


def _columns(model: scorer.Scorer, tree: turbohtml.Document) -> list[str]:
    reading = read_page(read_outline(tree), read_hints(tree, URL))
    return [*reading.columns, *reading.word_columns(model.vocabulary)]
