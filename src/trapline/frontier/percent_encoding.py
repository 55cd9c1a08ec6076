"""Normalisation of percent-encoding: needless escapes are decoded, the others are upper case.

A text with a stray `%` keeps its escapes as they are, because decoding beside a stray `%` could
make a new escape of it (`%%34%31` would become `%41`, and `A` the next time).
"""

import re

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_STRAY = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _spellings(byte: int) -> tuple[str, ...]:
    upper, lower = f"%{byte:02X}", f"%{byte:02x}"
    mixed = (f"%{upper[1]}{lower[2]}", f"%{lower[1]}{upper[2]}")
    return (upper, lower, *mixed)


_UPPER = {spelling: f"%{byte:02X}" for byte in range(256) for spelling in _spellings(byte)}
_NORMAL = {
    spelling: chr(int(spelling[1:], 16)) if chr(int(spelling[1:], 16)) in _UNRESERVED else upper
    for spelling, upper in _UPPER.items()
}


def normal(text: str) -> str:
    if "%" not in text:
        return text
    table = _UPPER if _STRAY.search(text) else _NORMAL
    return _ESCAPE.sub(lambda escape: table[escape[0]], text)


def encode_foreign(text: bytes) -> str:
    """Escape every octet that no URL may hold: spaces, controls, quotes and all beyond ASCII."""
    return text.decode("latin-1").translate(_FOREIGN)


_FOREIGN = {
    byte: f"%{byte:02X}" for byte in (*range(0x21), 0x22, 0x3C, 0x3E, 0x60, *range(0x7F, 0x100))
}
