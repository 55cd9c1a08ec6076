"""What to give for a page whose body has no text: the text kept for lesser browsers, or nothing.

Title and description are in the metadata. As content they would pass for the page's text, and
nobody would think of asking a browser for the real one.
"""

import re
from itertools import islice
from typing import Final

import turbohtml

_SPARE: Final = (
    "The page shows no text; what it keeps for browsers that cannot show it is returned."
)
_SCRIPTED: Final = "The page has no text without its scripts."
_FRAMED: Final = "The page is made of frames and has no text of its own."
_EMPTY: Final = "The page has no text."
# Their content is kept as raw text by the parser, or apart from the page.
_RAW: Final = ("noframes", "noembed", "iframe", "textarea", "object", "template")
_MAX_RAW: Final = 1_000_000
_MAX_NOTICE: Final = 240
_NOTICE: Final = re.compile(
    r"\b(?:enable|allow|activate|turn on|requires?|needs?|without) java ?script\b"
    r"|\bjava ?script (?:is|must be|to be|has to be) (?:\w+ )?(?:enabled|disabled|required|off)\b",
    re.IGNORECASE,
)


def fallback_text(tree: turbohtml.Document) -> tuple[str, str]:
    """The best text there is outside the body, and a warning that says what it is."""
    spare = _raw_text(tree)
    if spare:
        return spare, _SPARE
    if tree.find("frameset") is not None:
        return "", _FRAMED
    return "", _SCRIPTED if tree.find("script") is not None else _EMPTY


def requires_scripts(text: str) -> bool:
    """Whether all that a page says is that it needs scripts: that is no text of the page."""
    return len(text) <= _MAX_NOTICE and bool(_NOTICE.search(text))


def _raw_text(tree: turbohtml.Document) -> str:
    """Text inside elements whose content browsers do not show, parsed as the markup it is."""
    found = []
    for element in islice(tree.iter_elements(_RAW), 20):
        inside = turbohtml.parse_fragment(element.text[:_MAX_RAW], positions=False)
        text = inside.to_text().strip()
        if text:
            found.append(text)
    return "\n".join(found)
