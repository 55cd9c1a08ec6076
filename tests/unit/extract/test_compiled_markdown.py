"""Texts and markdown are put together alike by the compiled code and by Python."""

from pathlib import Path

import numpy as np
import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.extract import _native, code, compiled, markdown, pruning, selection, tables
from trapline.extract.outline import Flags, read_outline

PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
PARTS = (
    "<em>", "</em>", "<strong>", "</strong>", "<", "</", ">", "*", "`", "``", "```", "````", "~", "~~~",
    "~~~~", " ", "  ", "\n", "\n\n", "a", "word.", ".", "_", "é", "\u200b", "\u00ad", "\u2003", "\ufeff",
    "\U0001f600", "\t", "\\",
)  # fmt: skip
LINES = st.lists(st.sampled_from(PARTS), max_size=40).map("".join)


def equally_tidied(text: str) -> None:
    assert compiled.tidy(text) == markdown.tidy(text), repr(text)


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
    assert compiled.tidy(text).endswith("`x *a.*\n")


@pytest.mark.parametrize("what", [None, b"bytes", 7])
def test_what_is_no_text_is_not_tidied(what: object) -> None:
    with pytest.raises(TypeError):
        _native.tidy(what)  # type: ignore[arg-type]


def equally_chosen(body: str, seed: int) -> None:
    page = compiled.read_outline(turbohtml.parse(body, positions=False))
    blocks = compiled.read_blocks(page)
    random = np.random.default_rng(seed)
    for part in (0.0, 0.2, 0.8, 1.0):
        chosen: Flags = random.random(len(blocks)) < part
        shown = selection.with_headline(chosen, blocks, page)
        assert compiled.with_headline(chosen, blocks, page).tolist() == shown.tolist()


def equally_pruned(body: str, seed: int) -> None:
    """What is left is the same, and the outline finds all of it and nothing else."""
    for part in (0.0, 0.2, 0.8, 1.0):
        trees = [turbohtml.parse(body, positions=False) for _ in range(2)]
        pages = [compiled.read_outline(trees[0]), read_outline(trees[1])]
        blocks = compiled.read_blocks(pages[0])
        chosen: Flags = np.random.default_rng(seed).random(len(blocks)) < part
        found = compiled.prune(pages[0], blocks, chosen)
        expected = pruning.prune(pages[1], blocks, chosen)
        assert trees[0].html == trees[1].html
        assert found.by_code.tolist() == expected.by_code.tolist()
        assert found.code_starts == expected.code_starts
        for tag in ("pre", "br", "h1", "img", "template"):
            for tree, left in zip(trees, (found, expected), strict=True):
                assert left.elements(tag, tree.find("body")) == tree.find_all(tag)
                assert left.may_have(tag) == bool(tree.find_all(tag))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_choices_of_our_own_pages(page: Path) -> None:
    equally_chosen(page.read_text(), 1)
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
def test_choices_of_any_page(body: str, seed: int) -> None:
    equally_chosen(body, seed)
    equally_pruned(body, seed)


LEFT_TO_PYTHON = "table,template,svg,math,script,style,link,meta,noscript,object"


def equally_marked(body: str) -> None:
    """Languages and tables are told by the compiled code as in Python, or left to that."""
    tree = turbohtml.parse(body, positions=False)
    page = compiled.read_outline(tree)
    blocks, found = tree.find_all("pre"), compiled.languages(page, code.given, code.classed)
    if not tree.select("pre pre"):
        assert found == list(code.languages(blocks))
    else:
        assert found is None
    shown, verdicts = tree.find_all("table"), compiled.verdicts(page, tables.KINDS)
    if verdicts is not None:
        assert list(verdicts) == [tables.verdict_on(table) for table in shown]
    else:
        assert any(table.attr("role") or table.select(LEFT_TO_PYTHON) for table in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_marks_of_our_own_pages(page: Path) -> None:
    equally_marked(page.read_text())


@pytest.mark.parametrize(
    "body",
    [
        "<pre class=language-c>x</pre><pre><code data-lang=Rust>x</code></pre>",
        "<div class=highlight-python><div class=highlight><pre>x<code>y</code></pre></div></div>",
        "<div data-language=' Go '><div><div><pre>x</pre></div></div></div>",
        "<div data-language=go><div><div><div><pre>x</pre></div></div></div></div>",
        "<pre data-lang='' data-language=text class='brush: js'>x</pre><pre>y</pre>",
        "<pre><code class=language-c><pre>x</pre></code></pre>",
        "<table><tr><td>1<td>2<tr><td colspan=2>3</table>",
        "<table><tr><td>1<tr><td>2</table><table><tr><td>1<td>2</table>",
        "<table><tr><th>1<td><p>2<p>3<tr><td>4<td>5</table>",
        "<table><tr><td>1<td><p>2</p> <!-- c --> <p>3<tr><td>4<td>5</table>",
        "<table><tr><td>1<td><p>2</p><b>x</b><p>3<tr><td>4<td>5</table>",
        "<table><caption>c</caption><tr><td>1<td><form></form>2<tr><td>3<td>4</table>",
        "<table><tr><td>1<td><table><tr><td>2<td>3</table></table>",
        "<table role=none><tr><td>1<td>2<tr><td>3<td>4</table>",
        "<table></table><table><tr></tr></table>",
    ],
)
def test_marks(body: str) -> None:
    equally_marked(body)


MARKED_TAGS = "table table tr tr td td th pre code p p div form hr caption thead h2"
ATTRIBUTES = ("", "", "", " class=language-c", " data-lang=go", " colspan=2", " class='brush: x'")
MARKED = st.lists(
    st.one_of(
        st.builds(
            "<{}{}>".format, st.sampled_from(MARKED_TAGS.split()), st.sampled_from(ATTRIBUTES)
        ),
        st.builds("</{}>".format, st.sampled_from(MARKED_TAGS.split())),
        st.sampled_from(["one", " ", "<!-- c -->"]),
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(MARKED)
def test_marks_of_any_page(body: str) -> None:
    equally_marked(body)


def test_what_was_cut_counts_for_nothing() -> None:
    """A row or a `code` that has left the tree is not seen in what is left."""
    body = "<table><tr><td>1<td>2<tr><td>3<td>4</table><pre><code class=language-c>a</code> b</pre>"
    tree = turbohtml.parse(body, positions=False)
    page = compiled.read_outline(tree)
    for gone in (tree.find_all("tr")[1], tree.find("code")):
        assert gone is not None
        page = page.without(np.array(page.found([gone])))
        gone.decompose()
    assert compiled.verdicts(page, tables.KINDS) == bytes([tables.LAYOUT])
    assert compiled.languages(page, code.given, code.classed) == []


def test_choices_of_another_page_are_refused() -> None:
    page = compiled.read_outline(turbohtml.parse("<h1>a</h1><pre>b</pre>c", positions=False))
    blocks = compiled.read_blocks(page)
    for chosen in (np.ones(len(blocks) + 1, np.bool_), np.ones(len(blocks) - 1, np.bool_)):
        with pytest.raises(ValueError, match="different pages"):
            compiled.with_headline(chosen, blocks, page)
