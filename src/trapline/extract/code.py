"""Code blocks: the language that highlighters hide in class names, without line numbers."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import turbohtml

from trapline.extract.marks import EVERYTHING, GUTTER_CLASS

_GUTTERS: Final = ".gutter,.linenos,.lineno,.line-numbers-rows,.hljs-ln-numbers,.lnt,.blob-num"
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:lang(?:uage)?|highlight(?:-source|-text)?|brush:?|sourceCode|hljs)[-: ]\s*"
    r"([A-Za-z][\w+#.-]*)"
)
_NOT_LANGUAGES: Final = frozenset(
    {"default", "none", "text", "plaintext", "notranslate", "highlight"}
)
_STEPS_UP: Final = 3


def mark_code(
    body: turbohtml.Element, blocks: Iterable[turbohtml.Element], marked: int = EVERYTHING
) -> None:
    """Give every block of code in the body a `code` element that names its language."""
    if marked & GUTTER_CLASS:
        for gutter in body.select(_GUTTERS):
            gutter.decompose()
    for block in blocks:
        language = _language_of(block)
        if language is None:
            continue
        code = block.find("code") or block.wrap_children(turbohtml.Element("code"))
        code.attrs["class"] = f"language-{language}"


def _language_of(block: turbohtml.Element) -> str | None:
    code = block.find("code")
    around: list[turbohtml.Element] = [code, block] if code else [block]
    for _ in range(_STEPS_UP):
        parent = around[-1].parent
        if isinstance(parent, turbohtml.Element):
            around.append(parent)
    for element in around:
        named = element.attr("data-lang") or element.attr("data-language")
        language = (named or _language_named(element.attr("class") or "")).strip().lower()
        if language and language not in _NOT_LANGUAGES and " " not in language:
            return language
    return None


@lru_cache(maxsize=1_000)
def _language_named(classes: str) -> str:
    match = _LANGUAGE.search(classes)
    return match[1] if match else ""
