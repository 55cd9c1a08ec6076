"""Markdown of a pruned tree: the parser's renderer, with links, images and the rest made ours."""

import re
from collections.abc import Callable
from typing import ClassVar, Final

import turbohtml

from trapline import native
from trapline.extract.html.attribute_scan import EVERYTHING
from trapline.extract.html.outline import Outline
from trapline.extract.markdown.code_blocks import mark_code
from trapline.extract.markdown.footnotes import (
    NOTE,
    REFERENCE,
    mark_footnotes,
    write_note,
    write_reference,
)
from trapline.extract.markdown.formulas import FORMULA, mark_formulas, write_formula
from trapline.extract.markdown.line_breaks import BREAK, mark_breaks, write_break
from trapline.extract.markdown.link_targets import LinkTargets
from trapline.extract.markdown.tables import arrange_tables

Absolute = Callable[[str], str | None]
Converter = Callable[[turbohtml.Element, str], str]

_ANCHOR_MARKS: Final = frozenset({"#", "¶", "§", "🔗", "\\#", "anchor", "permalink", "link"})
_LAZY: Final = ("data-src", "data-lazy-src", "data-original", "data-srcset", "srcset")
_PIXEL: Final = frozenset({"0", "1", "2", "0px", "1px", "2px"})
_INVISIBLE: Final = "\u200b\u2060\ufeff\u00ad"
_LINE_MARK: Final = re.compile(r"#{1,6} |[-*+] |[0-9]+[.)] |> ")
_LINE_MARKS: Final = frozenset("#-*+>0123456789")
_MAX_ALT: Final = 500
_FENCED: Final = re.compile(
    r"(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^ *(?P=fence)", re.DOTALL | re.MULTILINE
)
_CODE: Final = re.compile(r"(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
# A pattern that begins with a plain character is searched for many times as fast.
_EMPHASIS: Final = re.compile(
    r"<(?<![*\w]<)(?P<tag>strong|em)>(?P<words>[^\s<>*][^<>*\n]*(?<!\s))</(?P=tag)>"
    r"(?=[\s.,;:!?)\]]|$)",
    re.MULTILINE,
)
# What has no part in this: text, code between single marks, other tags.
_PLAIN: Final = re.compile(r"(?:[^`~<]++|`[^`]++`(?!`)|~(?!~~)|<(?!strong>|em>))++")
_CODE_MARK: Final = re.compile(r"`+|~{3,}")
# Two spaces before a line's end are a break, one is an accident.
_ACCIDENT: Final = re.compile(r" (?<!  )\n")
# What has a converter and can hold line breaks.
_WITH_BREAKS: Final = ("a", "dd", "summary", NOTE, REFERENCE)
_COMMON: Final = vars(turbohtml.Markdown(tables=turbohtml.Markdown.Tables(cell_blocks="text")))


def render(
    body: turbohtml.Element,
    absolute: LinkTargets,
    outline: Outline,
    attribute_flags: int = EVERYTHING,
    *,
    drop_data_images: bool = True,
) -> str:
    """The same tree gives the same text. The tree, which is of the outline's page, is changed.

    `attribute_flags` is what `marks` has seen in the page's source.
    """
    _prepare(body, outline, attribute_flags)
    images = _Images(absolute, drop_data=drop_data_images)
    written = body.to_markdown(_Options({**_CONVERTERS, "a": link_writer(absolute), "img": images}))
    return tidy(written)


def _prepare(body: turbohtml.Element, outline: Outline, attribute_flags: int) -> None:
    """Change in the tree what the renderer and the converters would not see; search only if need be."""
    if outline.may_have("pre"):
        mark_code(body, outline, attribute_flags)
    if outline.may_have(FORMULA):
        mark_formulas(body)
    if outline.may_have("a"):
        mark_footnotes(body, outline, attribute_flags)
    if outline.may_have("table"):
        arrange_tables(body, outline)
    if outline.may_have("br"):
        mark_breaks(outline.elements("br", body), _WITH_BREAKS)


def _with_marks(text: str) -> str:
    """The renderer writes tags where emphasis ends in punctuation, as if a letter always followed.

    Tags in code are left alone.
    """
    if not _EMPHASIS.search(text):
        return text
    parts: list[str] = []
    written = at = 0
    while at < len(text):
        if plain := _PLAIN.match(text, at):
            at = plain.end()
        elif mark := _CODE_MARK.match(text, at):
            at = _code_end(text, mark) or mark.end()
        elif match := _EMPHASIS.match(text, at):
            sign = "**" if match["tag"] == "strong" else "*"
            parts += (text[written:at], sign, match["words"], sign)
            written = at = match.end()
        else:
            at += 1
    return "".join((*parts, text[written:]))


def _code_end(text: str, mark: re.Match[str]) -> int | None:
    """Where the code ends that a run of marks opens, if it opens any."""
    start = mark.start()
    starts_line = not text[text.rfind("\n", 0, start) + 1 : start].strip(" ")
    fenced = _FENCED.match(text, start) if starts_line else None
    code = fenced or _CODE.match(text, start)
    return code.end() if code else None


def tidy(text: str, /) -> str:
    """Mend emphasis, breaks and blank lines; drop what is not seen."""
    if "</strong>" in text or "</em>" in text:
        text = _with_marks(text)
    if not text.isascii():
        for char in _INVISIBLE:
            if char in text:
                text = text.replace(char, "")
    if " \n" in text:
        text = _ACCIDENT.sub("\n", text).replace("\n  \n", "\n\n")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    text = text.strip("\n ")
    return text + "\n" if text else ""


def link_writer(targets: LinkTargets) -> Converter:
    return Links(targets)


class Links:
    """Links with an absolute target and a text; others keep their text alone."""

    def __init__(self, absolute: Absolute) -> None:
        self._absolute = absolute
        self._targets: dict[str, str | None] = {}

    def __call__(self, element: turbohtml.Element, rendered: str) -> str:
        text = rendered.strip()
        if not text:
            return " " if rendered else ""
        href = element.attr("href")
        if not href or (href[0] == "#" and text.lower() in _ANCHOR_MARKS):
            return "" if href else rendered
        target = self._target(href)
        if target is None:
            return rendered
        if text == rendered and "\n" not in text:
            return _linked(text, target)
        lead = rendered[: len(rendered) - len(rendered.lstrip())]
        trail = rendered[len(rendered.rstrip()) :]
        first, newline, rest = text.partition("\n")
        line = first.rstrip(" ")
        return f"{lead}{_linked(line, target)}{first[len(line) :]}{newline}{rest}{trail}"

    def _target(self, href: str) -> str | None:
        if href not in self._targets:
            found = self._absolute(href)
            self._targets[href] = _target(found) if found is not None else None
        return self._targets[href]


def _linked(line: str, target: str) -> str:
    """The line as a link; a heading's or a list item's mark stays outside."""
    mark = _LINE_MARK.match(line) if line[:1] in _LINE_MARKS else None
    prefix = mark[0] if mark else ""
    text = line[len(prefix) :].replace("\\|", "|")
    if not text or text[0] == "[":
        return line
    return f"{prefix}[{text}]({target})"


def _target(url: str) -> str:
    """A URL that ends where it should between parentheses."""
    if " " in url or "(" in url or ")" in url:
        return url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return url


class _Images:
    def __init__(self, absolute: Absolute, *, drop_data: bool) -> None:
        self._absolute = absolute
        self._drop_data = drop_data

    def __call__(self, element: turbohtml.Element, rendered: str) -> str:
        del rendered
        if element.attr("width") in _PIXEL or element.attr("height") in _PIXEL:
            return ""
        source = self._source(element)
        if source is None:
            return ""
        alt = " ".join((element.attr("alt") or "").split())[:_MAX_ALT]
        alt = alt.replace("[", "\\[").replace("]", "\\]")
        return f"![{alt}]({_target(source)})"

    def _source(self, element: turbohtml.Element) -> str | None:
        source = (element.attr("src") or "").strip()
        if source.startswith("data:") or not source:
            lazy = (element.attr(name) for name in _LAZY)
            found = next((value for value in lazy if value and not value.startswith("data:")), None)
            if found is None:
                return source if source and not self._drop_data else None
            source = found.split(",")[0].split()[0] if found.strip(" ,") else ""
        return self._absolute(source) if source else None


class _Options(turbohtml.Markdown):
    """The renderer's options. Only the converters are others for each page.

    To make them anew and to look at all of them costs a sixth of the rendering.
    """

    _values: ClassVar[dict[str, object]] = {}

    def __init__(self, converters: dict[str, Converter]) -> None:
        self.__dict__.update(_COMMON, converters=converters)

    def _unpack(self) -> dict[str, object]:
        if not self._values:
            self._values.update(super()._unpack())
        return {**self._values, "converters": self.converters}


def _write_definition(element: turbohtml.Element, rendered: str) -> str:
    del element
    text = rendered.strip()
    return ": " + text.replace("\n", "\n  ") if text else ""


def _write_summary(element: turbohtml.Element, rendered: str) -> str:
    del element
    text = rendered.strip()
    return f"**{text}**" if text and "\n" not in text and "*" not in text else rendered


_CONVERTERS: Final[dict[str, Converter]] = {
    "dd": _write_definition,
    "summary": _write_summary,
    FORMULA: write_formula,
    NOTE: write_note,
    REFERENCE: write_reference,
    BREAK: write_break,
}


def _compiled_link_writer(targets: LinkTargets) -> Converter:
    """Writes plain links; leaves the others to Python."""
    return native.library.LinkWriter(
        targets.references, targets.page, _ANCHOR_MARKS, Links(targets)
    )


if native.available:
    link_writer = _compiled_link_writer
    tidy = native.library.tidy
