"""What to give for a page whose body has no text: what it says of itself, and why that is all."""

from itertools import islice
from typing import Final

import turbohtml

from trapline.model import Metadata

_SCRIPTED: Final = "The page has no text without its scripts; {} is returned."
_FRAMED: Final = "The page is made of frames; {} is returned."
_EMPTY: Final = "The page has no text."
# Their content is kept as raw text by the parser, or apart from the page.
_RAW: Final = ("noframes", "noembed", "iframe", "textarea", "object", "template")
_MAX_RAW: Final = 1_000_000


def fallback_text(tree: turbohtml.Document, metadata: Metadata) -> tuple[str, str]:
    """The best text there is outside the body, and a warning that says what it is."""
    shape = _FRAMED if tree.find("frameset") is not None else _SCRIPTED
    hidden = _raw_text(tree)
    if hidden:
        return hidden, shape.format("the text for browsers that cannot show it")
    described = [part for part in (metadata.title, metadata.description) if part]
    if described:
        return "\n".join(described), shape.format("its title and description")
    return "", _EMPTY


def _raw_text(tree: turbohtml.Document) -> str:
    """Text inside elements whose content browsers do not show, parsed as the markup it is."""
    found = []
    for element in islice(tree.iter_elements(_RAW), 20):
        inside = turbohtml.parse_fragment(element.text[:_MAX_RAW], positions=False)
        text = inside.to_text().strip()
        if text:
            found.append(text)
    return "\n".join(found)
