"""What the compiled reader must not be handed is refused: no array is read past its end."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import turbohtml
from msgspec.structs import replace

from tests.support.pure_python import needs_native
from trapline import native
from trapline.extract.html.outline import TEXT_NODE, Ints, Outline, read_outline
from trapline.extract.main_content import scorer
from trapline.extract.main_content.blocks import Blocks, read_blocks
from trapline.extract.main_content.pruning import prune
from trapline.extract.metadata.page_type_hints import read_hints

pytestmark = needs_native

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
        self.outline: Outline = read_outline(tree)
        self.blocks: Blocks = read_blocks(self.outline)
        self.echo: frozenset[Any] = frozenset(("a", "b"))
        self.hints: list[Any] = [0.5, 2]
        self.lexicons: tuple[object, ...] = (native.library.lexicon({"one": 1.0, "m": -1.0}),) * 4
        model = scorer.shipped_scorer()
        self.width = model.features(self.outline, read_hints(tree, URL)).matrix.shape[1]

    def describe(self) -> None:
        outline, blocks = self.outline, self.blocks
        native.library.reading(
            outline.nodes, outline.code, outline.parent, outline.last, blocks.texts,
            blocks.words, blocks.owner, blocks.first,
            blocks.piece_row, blocks.piece_block, blocks.piece_size,
            self.echo, self.hints, self.lexicons, self.width,
        )  # fmt: skip

    def cut(self) -> None:
        prune(self.outline, self.blocks, np.ones(len(self.blocks), np.bool_))


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


@pytest.mark.parametrize("name", ["code", "parent", "last"])
def test_a_tree_that_has_changed(page: Page, name: str) -> None:
    """A tree that was checked once is not checked again, but only if it is the same and stays so."""
    page.describe()
    right = getattr(page.outline, name).copy()
    page.outline = replace(page.outline, **{name: right})
    page.describe()
    right[-1] = 2**62
    with pytest.raises(REFUSALS):
        page.describe()
    page.outline = replace(page.outline, **{name: right.tobytes()})
    for _ in range(2):
        with pytest.raises(REFUSALS):
            page.describe()


@pytest.mark.parametrize("kind", ["sparse", "narrow", "crooked", "negative", "huge"])
def test_rows_that_are_none(page: Page, kind: str) -> None:
    page.outline = replace(page.outline, by_code=wrong(page.outline.by_code, kind))
    with pytest.raises(REFUSALS):
        page.cut()


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
