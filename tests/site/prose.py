"""Written text: Markdown to HTML with its links, and HTML back to the plain text of a reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.site.page import Link

_markdown = MarkdownIt("commonmark", {"typographer": False}).enable("table")

_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "td",
        "th",
        "tr",
        "ul",
    ]
)
_SILENT = frozenset({"script", "style", "template", "button", "select", "noscript", "svg"})


@dataclass(frozen=True, slots=True)
class Prose:
    """A piece of text as HTML, and where it links to."""

    html: str
    links: tuple[Link, ...] = ()


def markdown(text: str) -> Prose:
    """Render Markdown; links are taken from its tokens, not from its HTML."""
    tokens = _markdown.parse(text)
    html = _markdown.renderer.render(tokens, _markdown.options, {})
    return Prose(html, tuple(_links(tokens)))


def _links(tokens: list[Token]) -> Iterator[Link]:
    for block in tokens:
        children = block.children or []
        for at, token in enumerate(children):
            if token.type == "link_open":
                words = "".join(child.content for child in children[at + 1 : at + 2])
                yield Link(str(token.attrGet("href")), words)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = [""]
        self._silent = 0

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        if tag in _BLOCKS:
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in _SILENT
        if tag in _BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.lines[-1] += data


def text_of(html: str) -> str:
    """Return the words of a piece of HTML, one block a line, white space folded."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in parser.lines)
    return "\n".join(line for line in lines if line)
