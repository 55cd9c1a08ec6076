"""Script dependence: signals in a page's source that its text is made by scripts."""

import re
from typing import Final

import turbohtml

_FEW_WORDS: Final = 50
_SOME_WORDS: Final = 200
_MAX_SOURCE: Final = 2_000_000
_WORD: Final = re.compile(r"\w+")
_MOUNT: Final = re.compile(
    r'<(?:div|main|section|body)[^>]*\bid=["\']?(?:root|app|__next|__nuxt|main|react-root|___gatsby'
    r'|app-root|svelte|ember\d*|redoc|swagger-ui)["\']?[^>]*>\s*</',
    re.IGNORECASE,
)
_NOTICE: Final = re.compile(r"\bjava ?script\b", re.IGNORECASE)
_LOADING: Final = re.compile(r"\b(?:loading|please wait|one moment)\b", re.IGNORECASE)
_REQUEST: Final = re.compile(r"\b(?:fetch\s*\(|XMLHttpRequest|axios\b|\$\.(?:get|ajax|getJSON)\b)")


def script_dependence(source: str, words: int) -> str | None:
    """Return why a page's text is made by scripts, in a few words; None if it is in the source.

    `words` is the number of words of its content, as far as extraction found any.
    """
    if words >= _SOME_WORDS or "<script" not in source[:_MAX_SOURCE].lower():
        return None
    tree = turbohtml.parse(source[:_MAX_SOURCE], positions=False)
    scripts = [script for script in tree.iter_elements(("script",)) if _runs(script)]
    if not scripts:
        return None
    shown, spare = _words(tree)
    if shown + spare < _FEW_WORDS:
        return f"{shown} words without scripts"
    if shown >= _SOME_WORDS:
        return None
    return _sign(source, tree, scripts)


def _sign(source: str, tree: turbohtml.Document, scripts: list[turbohtml.Element]) -> str | None:
    """Return the sign of a page with some words that more of them come by script."""
    if _MOUNT.search(source):
        return "an empty element for an application"
    for element in tree.iter_elements(("noscript",)):
        if _NOTICE.search(element.text):
            return "a notice that JavaScript is needed"
    if any(_REQUEST.search(script.text) for script in scripts):
        return "a script that fetches data"
    body = tree.find("body")
    if body is not None and _LOADING.search(body.text[:10_000]):
        return "a text that says it is loading"
    return None


def _runs(script: turbohtml.Element) -> bool:
    kind = str(script.attrs.get("type") or "").lower()
    return kind in {"", "module"} or "javascript" in kind


def _words(tree: turbohtml.Document) -> tuple[int, int]:
    """Return the words that the page shows, and those that it keeps for browsers without scripts."""
    spare = sum(_count(element.text) for element in tree.iter_elements(("noscript",)))
    return max(0, _count(tree.to_text()) - spare), spare


def _count(text: str) -> int:
    return len(_WORD.findall(text))
