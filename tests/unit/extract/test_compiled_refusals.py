"""What the compiled reader must not be handed is refused: no array is read past its end."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import turbohtml
from msgspec.structs import replace

from trapline.extract import _native, compiled, scorer, selection
from trapline.extract.blocks import Blocks
from trapline.extract.hints import Said, read_said
from trapline.extract.outline import TEXT_NODE, Ints, Outline
from trapline.extract.tables import KINDS

BODY = (
    "<title>a b</title><main class=m><h1>A</h1><p>one two<br>three<p><a href=x>four</a> b"
    "<pre><code>c</code></pre><table><tr><td>d<td>e</table></main>"
)
URL = "https://example.com/"
REFUSALS = (ValueError, TypeError, BufferError)


class Page:
    """A page read right, whose parts can be put out of order."""

    def __init__(self) -> None:
        tree = turbohtml.parse(BODY, positions=False)
        self.outline: Outline = compiled.read_outline(tree)
        self.blocks: Blocks = compiled.read_blocks(self.outline)
        self.echo: frozenset[Any] = frozenset(("a", "b"))
        self.hints: list[Any] = [0.5, 2]
        self.lexicons: tuple[object, ...] = (compiled.lexicon({"one": 1.0, "m": -1.0}),) * 4
        model = scorer.shipped_scorer()
        self.width = model.features(self.outline, read_said(tree, URL)).matrix.shape[1]

    def describe(self) -> None:
        said = Said(self.echo, self.hints)
        compiled.read_features(self.outline, self.blocks, said, self.lexicons, self.width)

    def cut(self) -> None:
        compiled.prune(self.outline, self.blocks, np.ones(len(self.blocks), np.bool_))

    def name(self) -> None:
        compiled.languages(self.outline, str, str)

    def arrange(self) -> None:
        compiled.verdicts(self.outline, KINDS)


@pytest.fixture
def page() -> Page:
    return Page()


def test_hints_that_are_no_numbers(page: Page) -> None:
    page.describe()
    page.hints = ["one"]
    with pytest.raises(TypeError, match="real number"):
        page.describe()


WRONG = ("short", "long", "empty", "sparse", "narrow", "crooked", "negative", "huge")


def wrong(right: Ints, kind: str) -> Any:
    return {
        "short": right[:-1].copy(),
        "long": np.append(right, right[-1]),
        "empty": right[:0],
        "sparse": np.repeat(right, 2)[::2],
        "narrow": right.astype(np.int32),
        "crooked": np.zeros(right.nbytes + 1, np.uint8)[1:],
        "negative": np.full_like(right, -1),
        "huge": np.full_like(right, 2**62),
    }[kind]


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", ["code", "parent", "last"])
def test_a_tree_that_is_none(page: Page, name: str, kind: str) -> None:
    page.outline = replace(page.outline, **{name: wrong(getattr(page.outline, name), kind)})
    with pytest.raises(REFUSALS):
        page.describe()
    with pytest.raises(REFUSALS):
        page.cut()
    with pytest.raises(REFUSALS):
        page.name()
    with pytest.raises(REFUSALS):
        page.arrange()


@pytest.mark.parametrize("name", ["code", "parent", "last"])
def test_a_tree_that_has_changed(page: Page, name: str) -> None:
    """What was looked at once is not looked at again, but only if it is the same and stays so."""
    page.name()
    right = getattr(page.outline, name).copy()
    page.outline = replace(page.outline, **{name: right})
    page.name()
    right[-1] = 2**62
    with pytest.raises(REFUSALS):
        page.name()
    page.outline = replace(page.outline, **{name: right.tobytes()})
    for _ in range(2):
        with pytest.raises(REFUSALS):
            page.name()


@pytest.mark.parametrize("kind", ["sparse", "narrow", "crooked", "negative", "huge"])
def test_rows_that_are_none(page: Page, kind: str) -> None:
    page.outline = replace(page.outline, by_code=wrong(page.outline.by_code, kind))
    with pytest.raises(REFUSALS):
        page.cut()
    with pytest.raises(REFUSALS):
        page.arrange()


def test_kinds_of_other_tags(page: Page) -> None:
    with pytest.raises(ValueError, match="different pages"):
        compiled.verdicts(page.outline, KINDS[:-1])


def test_what_is_called_fails(page: Page) -> None:
    def fail(_: str) -> str:
        message = "no language"
        raise LookupError(message)

    with pytest.raises(LookupError, match="no language"):
        compiled.languages(page.outline, fail, fail)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize(
    "name", ["words", "owner", "first", "piece_row", "piece_block", "piece_size"]
)
def test_blocks_of_another_page(page: Page, name: str, kind: str) -> None:
    page.blocks = replace(page.blocks, **{name: wrong(getattr(page.blocks, name), kind)})
    with pytest.raises(REFUSALS):
        page.describe()


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", ["first", "piece_row", "piece_block"])
def test_cutting_by_blocks_of_another_page(page: Page, name: str, kind: str) -> None:
    page.blocks = replace(page.blocks, **{name: wrong(getattr(page.blocks, name), kind)})
    with pytest.raises(REFUSALS):
        page.cut()


def test_what_holds_others_is_no_text(page: Page) -> None:
    text = int(page.outline.rows_of("p")[0]) + 1
    assert page.outline.code[text] == TEXT_NODE
    parent = page.outline.parent.copy()
    parent[-1] = text
    page.outline = replace(page.outline, parent=parent)
    with pytest.raises(ValueError, match="different pages"):
        page.describe()
    page = Page()
    page.blocks = replace(page.blocks, owner=np.full_like(page.blocks.owner, text))
    with pytest.raises(ValueError, match="stands in an element"):
        page.describe()


@pytest.mark.parametrize("more", [-10_000, -100, -1, 1, 2**60])
def test_a_model_of_another_width(page: Page, more: int) -> None:
    page.width += more
    with pytest.raises(ValueError, match=r"features where|another model"):
        page.describe()


def test_texts_and_words_that_are_none(page: Page) -> None:
    texts: list[Any] = [7] * len(page.blocks)
    scores = np.ones(len(texts), np.float32)
    with pytest.raises(TypeError, match="texts are strings"):
        _native.choose(texts, scores, page.blocks.words, 0.5, 1.0)
    for echo in (frozenset((7,)), frozenset(("",))):
        page.echo = echo
        with pytest.raises(TypeError, match="a string with letters"):
            page.describe()
    page.blocks = replace(page.blocks, texts=texts)
    with pytest.raises(TypeError, match="texts are strings"):
        page.describe()


class Odd:
    """A node of no page."""

    attrs = ("class", "id")

    def attr(self, name: str) -> bytes:
        return name.encode()


def test_nodes_that_are_none(page: Page) -> None:
    page.outline = replace(page.outline, nodes=[Odd()] * len(page.outline.nodes))
    with pytest.raises(TypeError, match="a name is a string"):
        page.describe()


def test_scores_that_are_no_numbers(page: Page) -> None:
    scores = np.array([np.nan, 0.3, 0.9, np.nan], np.float32)
    words = np.array([4, 5, 6, 7])
    found = replace(page.blocks, texts=["a", "b", "c", "d"], words=words)
    flags, chosen, surest = compiled.choose(scores, found)
    assert flags.tolist() == [False, False, True, False]
    assert flags.tolist() == selection.choose(scores, found).flags.tolist()
    assert (chosen, surest) == (6, scores[2]) == selection.choose(scores, found)[1:]
    empty = replace(found, words=np.zeros(4, np.intp))
    scores = np.array([0.1, 0.3, 0.9, 0.9], np.float32)
    with np.errstate(invalid="ignore"):
        mine = selection.choose(scores, empty).flags.tolist()
    assert compiled.choose(scores, empty).flags.tolist() == mine


def test_nothing_is_kept_of_what_was_read_or_refused() -> None:
    def once() -> None:
        page = Page()
        page.describe()
        page.cut()
        for part in ({"width": 3}, {"echo": frozenset((7,))}, {"lexicons": (None,) * 4}):
            vars(page).update(part)
            with pytest.raises(REFUSALS):
                page.describe()

    for _ in range(20):
        once()
    tracemalloc.start()
    try:
        once()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            once()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A page is some thirty kilobytes; one that were kept, of fifty, would be seen.
    assert after - before < 20_000
