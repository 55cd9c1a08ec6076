"""Bytes in, Document out: main content, markdown, metadata, links.

In: a body, its content type and its URL. Out: a Document, always the same for the same bytes.
Owns no table and knows no database, clock, client or settings.
"""

from trapline.extract.page import extract

__all__ = ["extract"]
