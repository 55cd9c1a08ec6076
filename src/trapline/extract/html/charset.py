"""Bytes to text, as browsers do it, except that a declaration which is plainly wrong is not obeyed.

Text that is valid UTF-8 is UTF-8 whatever the page says. Otherwise the byte-order mark, the HTTP
header and the meta tag are believed in this order, unless what they give is full of holes; then
the bytes themselves are asked.
"""

import codecs
import re
from typing import Final

from msgspec import Struct
from turbohtml.detect import detect

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADER: Final = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META: Final = re.compile(
    rb"<(?:meta[^>]{0,500}?charset|\?xml[^>]{0,200}?encoding)\s*=\s*[\"']?\s*([\w.:-]+)",
    re.IGNORECASE,
)
_META_WITHIN: Final = 4096
_SAMPLE: Final = 200_000
_FIRST_OF_MARKS: Final = bytes(mark[0] for mark, _ in _MARKS)
_HOLE: Final = "\ufffd"
_TOLERATED_HOLES: Final = 0.1


class DecodedText(Struct, frozen=True):
    text: str
    encoding: str
    doubtful: bool = False
    """True when the declared encoding did not fit and another was guessed."""
    body: bytes | None = None
    """What the text was made of, where that is UTF-8 from its first byte."""

    @property
    def source(self) -> str | bytes:
        """What is quickest to look through."""
        return self.text if self.body is None else self.body


def decode(body: bytes, content_type: str | None) -> DecodedText:
    for mark, encoding in _MARKS if body and body[0] in _FIRST_OF_MARKS else ():
        if body.startswith(mark):
            return DecodedText(body[len(mark) :].decode(encoding, "replace"), encoding)
    if not _is_shifted(body, content_type):
        unicode = None if _has_many_nulls(body) else _utf8(body)
        if unicode is not None:
            return DecodedText(unicode, "utf-8", body=body)
    declared = _declared(body, content_type)
    if declared:
        text = _decoded_as(declared, body)
        if text is not None and _holes(text, body) <= _TOLERATED_HOLES:
            return DecodedText(text, declared)
    return _guess(body, doubtful=declared is not None)


def _is_shifted(body: bytes, content_type: str | None) -> bool:
    """Whether an encoding is declared whose bytes are all those of ASCII, and so valid UTF-8."""
    # Most bodies do not name one anywhere, which is quicker to see than what they declare.
    if "-2022" not in (content_type or "") and body.find(b"-2022", 0, _META_WITHIN) < 0:
        return False
    return (_declared(body, content_type) or "").startswith("iso-2022")


def _declared(body: bytes, content_type: str | None) -> str | None:
    header = _HEADER.search(content_type or "")
    if header:
        return header[1].lower()
    meta = _META.search(body, 0, _META_WITHIN)
    return meta[1].decode("ascii").lower() if meta else None


def _has_many_nulls(body: bytes) -> bool:
    """Whether it is UTF-16 without a mark: that is mostly ASCII with a null beside each letter."""
    if body.find(0, 0, 1000) < 0:
        return False
    head = body[:1000]
    return len(head) > 1 and head.count(0) * 3 > len(head)


def _utf8(body: bytes) -> str | None:
    """The text of bytes in UTF-8; None if they are not."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _decoded_as(encoding: str, body: bytes) -> str | None:
    try:
        return codecs.decode(body, f"whatwg-{encoding}")
    except LookupError:
        return None


def _holes(text: str, body: bytes) -> float:
    """Share of the characters beyond ASCII that could not be decoded."""
    missing = text.count(_HOLE)
    if not missing:
        return 0.0
    beyond = sum(byte > 0x7F for byte in body[:_SAMPLE]) or 1  # noqa: PLR2004
    return missing / beyond


def _guess(body: bytes, *, doubtful: bool) -> DecodedText:
    head = body[:1000]
    if _has_many_nulls(body):
        little = head[1::2].count(0) >= head[::2].count(0)
        encoding = "utf-16-le" if little else "utf-16-be"
        return DecodedText(body.decode(encoding, "replace"), encoding, doubtful)
    # The detector believes a meta tag; this one has just been found wrong.
    match = detect(re.sub(rb"(?i)charset|encoding", b"-", body[:_SAMPLE]))
    encoding = (match.encoding or "windows-1252").lower()
    text = _decoded_as(encoding, body)
    return DecodedText(text if text is not None else body.decode("latin-1"), encoding, doubtful)
