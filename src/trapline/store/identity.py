"""When two contents are the same: the hash of what a reader would call the text."""

import hashlib
import unicodedata


def content_hash(text: str) -> bytes:
    """Return the SHA-256 of a main text; how it is spaced and composed makes no difference."""
    normal = " ".join(unicodedata.normalize("NFC", text).split())
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).digest()
