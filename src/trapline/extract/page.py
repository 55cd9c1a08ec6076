"""The order of an extraction: decode, parse once, choose the main content, render, describe.

Modules that describe a page (`metadata`, `links`, `structured`, …) take the parsed
`turbohtml.Document` and the page's URL and return frozen dataclasses; files that are not
HTML go to `documents`.
"""

import turbohtml

from trapline.model import Document, ExtractOptions

_DEFAULTS = ExtractOptions()


def extract(
    body: bytes,
    content_type: str | None,
    url: str,
    options: ExtractOptions = _DEFAULTS,
) -> Document:
    """Make a Document of a body. Pure: the same bytes give the same Document."""
    del options
    tree = turbohtml.parse(body, positions=False, detect_encoding=True)
    text = tree.main_text()
    return Document(url=url, content_type=content_type, text=text, markdown=text)
