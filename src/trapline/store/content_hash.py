"""Content hash: SHA-256 of a main text, whatever its white space and Unicode composition."""

import hashlib
import unicodedata

from trapline import native


def content_hash(text: str) -> bytes:
    """Return the SHA-256 of the normalised main text."""
    return hashlib.sha256(squeezed_if_composed(text) or squeezed(text)).digest()


def squeezed(text: str) -> bytes:
    """Return a text's words with one space between them, in Unicode's normal form C."""
    normal = " ".join(unicodedata.normalize("NFC", text).split())
    return normal.encode("utf-8", "surrogatepass")


def squeezed_if_composed(text: str, /) -> bytes | None:
    """Return `squeezed` of a text in form C that compiled code recognises; None for any other."""
    del text
    return None


def without_nulls(text: str) -> str:
    """Return a text without NUL characters, which PostgreSQL rejects."""
    # The test takes a fraction of what `replace` does, and nearly no text has one.
    return text.replace("\x00", "") if "\x00" in text else text


if native.available:
    squeezed_if_composed = native.library.squeezed
