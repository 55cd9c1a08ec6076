"""When two contents are the same: the hash of what a reader would call the text."""

import hashlib
import unicodedata

try:
    from trapline.store import _native
except ImportError:
    _native = None  # type: ignore[assignment]


def content_hash(text: str) -> bytes:
    """Return the SHA-256 of a main text; how it is spaced and composed makes no difference."""
    return hashlib.sha256(_squeezed(text) or python_squeezed(text)).digest()


def _squeezed(text: str) -> bytes | None:
    """Return what compiled code makes of a text; nothing where it must be composed first."""
    if _native is None:
        return None
    return _native.squeezed(text)


def python_squeezed(text: str) -> bytes:
    """Return a text's words with one space between them, in their normal spelling."""
    normal = " ".join(unicodedata.normalize("NFC", text).split())
    return normal.encode("utf-8", "surrogatepass")


def without_nulls(text: str) -> str:
    """Return a text that PostgreSQL takes: it has no place for a NUL character."""
    if _native is None:
        return text.replace("\x00", "")
    return text.replace("\x00", "") if _native.has_nulls(text) else text
