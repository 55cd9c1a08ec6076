"""Bytes in, Document out: main content, markdown, metadata, links.

In: a body, its content type and its URL. Out: a Document, always the same for the same bytes.
Owns no table and knows no database, clock, client or settings.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trapline.extract.page import extract

__all__ = ["extract"]


def __getattr__(name: str) -> object:
    # The process that reads files needs nothing of what pages need, numpy above all. It starts
    # several times faster when only those who call `extract` load it.
    if name != "extract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("trapline.extract.page").extract
