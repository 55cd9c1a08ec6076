"""Code blocks: the language that highlighters hide in class names, without line numbers."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import turbohtml

from trapline.extract.html.attribute_scan import EVERYTHING, GUTTER_CLASS
from trapline.extract.html.outline import Outline

_GUTTERS: Final = ".gutter,.linenos,.lineno,.line-numbers-rows,.hljs-ln-numbers,.lnt,.blob-num"
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:lang(?:uage)?|highlight(?:-source|-text)?|brush:?|sourceCode|hljs)[-: ]\s*"
    r"([A-Za-z][\w+#.-]*)"
)
_NOT_LANGUAGES: Final = frozenset(
    {"default", "none", "text", "plaintext", "notranslate", "highlight"}
)
_STEPS_UP: Final = 3


def mark_code(body: turbohtml.Element, outline: Outline, attribute_flags: int = EVERYTHING) -> None:
    """Say in the class of every block of code, or of the `code` in it, which language it is.

    The outline is that of the page, and of nothing that has left it.
    """
    if attribute_flags & GUTTER_CLASS:
        for gutter in body.select(_GUTTERS):
            gutter.decompose()
    for element, language in _languages(outline.elements("pre", body)):
        element.attrs["class"] = f"language-{language}"


def _languages(
    blocks: Iterable[turbohtml.Element],
) -> Iterator[tuple[turbohtml.Element, str]]:
    """The languages of code blocks, each with the element whose class shall name it."""
    for block in blocks:
        code = block.find("code")
        around: list[turbohtml.Element] = [code, block] if code else [block]
        for _ in range(_STEPS_UP):
            parent = around[-1].parent
            if isinstance(parent, turbohtml.Element):
                around.append(parent)
        language = next(filter(None, map(_language_of, around)), None)
        if language:
            yield code or block, language


def _language_of(element: turbohtml.Element) -> str | None:
    named = element.attr("data-lang") or element.attr("data-language")
    return _named(named) if named else _classed(element.attr("class") or "")


@lru_cache(maxsize=1_000)
def _named(name: str) -> str | None:
    language = name.strip().lower()
    return language if language and language not in _NOT_LANGUAGES and " " not in language else None


@lru_cache(maxsize=1_000)
def _classed(classes: str) -> str | None:
    match = _LANGUAGE.search(classes)
    return _named(match[1]) if match else None
