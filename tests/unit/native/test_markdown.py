"""Markdown is tidied, and trees are pruned, alike by the compiled code and by Python."""

from pathlib import Path

import numpy as np
import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.paths import PAGES
from tests.support.pure_python import needs_native, pure_python
from trapline.extract.html.outline import Flags, read_outline
from trapline.extract.main_content.blocks import read_blocks
from trapline.extract.main_content.pruning import prune
from trapline.extract.markdown.renderer import tidy

pytestmark = needs_native

python_tidy = pure_python("trapline.extract.markdown.renderer").tidy
python_read_outline = pure_python("trapline.extract.html.outline").read_outline
python_prune = pure_python("trapline.extract.main_content.pruning").prune

PARTS = (
    "<em>", "</em>", "<strong>", "</strong>", "<", "</", ">", "*", "`", "``", "```", "````", "~", "~~~",
    "~~~~", " ", "  ", "\n", "\n\n", "a", "word.", ".", "_", "é", "\u200b", "\u00ad", "\u2003", "\ufeff",
    "\U0001f600", "\t", "\\",
)  # fmt: skip
LINES = st.lists(st.sampled_from(PARTS), max_size=40).map("".join)


def equally_tidied(text: str) -> None:
    assert tidy(text) == python_tidy(text), repr(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\n \n", "a\n  \n  \nb", "a \nb  \nc   \nd", "a\n\n\n\n\nb", "  \n  \nx", "\u200b\n",
        "<em>a.</em> b", "x<em>a.</em> b", "<em>a.</em>b", "<em> a</em>", "<strong>a</strong>",
        "<em>a</strong></em>", "`<em>a.</em>`", "``<em>a.</em>` ``", "`<em>a.</em>", "~~~\n<em>a.</em>\n~~~",
        "````\n<em>a.</em>\n```\n<em>b.</em>\n", "```\nx\n`````<em>a.</em>` <em>b.</em>",
        "```\nx\n````<em>a.</em>` <em>b.</em>", "  ```\n<em>a.</em>\n   ```<em>b.</em>", "<em></em>",
        "<em>é.</em>\u2003", "é<em>a.</em>", "<em>a\u2003</em>", "<em>\U0001f600.</em>", "\x00 \n\x00",
    ],
)  # fmt: skip
def test_odd_texts_are_tidied(text: str) -> None:
    equally_tidied(text)


@settings(max_examples=600, deadline=None)
@given(LINES)
def test_any_text_is_tidied(text: str) -> None:
    equally_tidied(text)


def test_a_text_of_marks_alone_is_tidied_in_time() -> None:
    """Each run looks for one of its own length; none is there."""
    text = "".join("`" * size + "x" for size in range(1, 3_000)) + " <em>a.</em>"
    assert tidy(text).endswith("`x *a.*\n")


@pytest.mark.parametrize("what", [None, b"bytes", 7])
def test_what_is_no_text_is_not_tidied(what: object) -> None:
    with pytest.raises(TypeError):
        tidy(what)  # type: ignore[arg-type]


def equally_pruned(body: str, seed: int) -> None:
    """What is left is the same, and the outline finds all of it and nothing else."""
    for part in (0.0, 0.2, 0.8, 1.0):
        trees = [turbohtml.parse(body, positions=False) for _ in range(2)]
        pages = [read_outline(trees[0]), python_read_outline(trees[1])]
        blocks = read_blocks(pages[0])
        chosen: Flags = np.random.default_rng(seed).random(len(blocks)) < part
        found = prune(pages[0], blocks, chosen)
        expected = python_prune(pages[1], blocks, chosen)
        assert trees[0].html == trees[1].html
        assert found.by_code.tolist() == expected.by_code.tolist()
        assert found.code_starts == expected.code_starts
        for tag in ("pre", "br", "h1", "img", "template"):
            for tree, left in zip(trees, (found, expected), strict=True):
                assert left.elements(tag, tree.find("body")) == tree.find_all(tag)
                assert left.may_have(tag) == bool(tree.find_all(tag))


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.html")), ids=lambda page: page.stem)
def test_pruning_of_our_own_pages(page: Path) -> None:
    equally_pruned(page.read_text(), 1)


TAGS = "p div pre pre h1 h2 b br code span li img template"
MARKUP = st.lists(
    st.one_of(
        st.builds("<{}>".format, st.sampled_from(TAGS.split())),
        st.builds("</{}>".format, st.sampled_from(TAGS.split())),
        st.sampled_from(["one", "two three", " ", "\n", "\n\n four\n"]),
    ),
    max_size=40,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(MARKUP, st.integers(0, 1000))
def test_pruning_of_any_page(body: str, seed: int) -> None:
    equally_pruned(body, seed)
