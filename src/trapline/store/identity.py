"""When two contents are the same: the hash of what a reader would call the text."""

import hashlib
import re
import unicodedata

_BLANK = re.compile(r"\s+")


def content_hash(text: str) -> bytes:
    """Return the SHA-256 of a main text; how it is spaced and composed makes no difference."""
    normal = _BLANK.sub(" ", unicodedata.normalize("NFC", text)).strip()
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).digest()
