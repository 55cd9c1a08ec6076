"""Structured fields (RFC 9651): the List of Items with parameters, as Cache-Status is one.

Inner lists, dates and display strings are refused; Cache-Status has none.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from msgspec import Struct

Bare = str | int | Decimal | bool | bytes

_SPACE: Final = re.compile(r"[ \t]*")
_KEY: Final = re.compile(r"[a-z*][a-z0-9_.*-]*")
_TOKEN: Final = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*")
_STRING: Final = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_NUMBER: Final = re.compile(r"-?(?:([0-9]{1,12}\.[0-9]{1,3})|[0-9]{1,15})(?![0-9.])")
_BINARY: Final = re.compile(r":([A-Za-z0-9+/=]*):")
_BOOLEAN: Final = re.compile(r"\?([01])")
_ESCAPE: Final = re.compile(r"\\(.)")


class Item(Struct, frozen=True):
    """A value with its parameters; a later parameter of a name replaces an earlier one."""

    value: Bare
    parameters: Mapping[str, Bare]


def parse_list(text: str) -> tuple[Item, ...] | None:
    """Return the items of a list; None where the field is malformed, as the RFC has it."""
    try:
        return _Parser(text).items()
    except ValueError:
        return None


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text.strip(" ")
        self._at = 0

    def items(self) -> tuple[Item, ...]:
        items: list[Item] = []
        while self._at < len(self._text):
            items.append(Item(self._bare(), self._parameters()))
            self._match(_SPACE)
            if self._at == len(self._text):
                break
            self._expect(",")
            self._match(_SPACE)
            if self._at == len(self._text):
                raise ValueError("a comma ends the list")
        return tuple(items)

    def _parameters(self) -> dict[str, Bare]:
        parameters: dict[str, Bare] = {}
        while self._accept(";"):
            while self._accept(" "):
                pass
            key = self._need(_KEY)[0]
            parameters[key] = self._bare() if self._accept("=") else True
        return parameters

    def _bare(self) -> Bare:
        for pattern, convert in _BARE:
            match = self._match(pattern)
            if match is not None:
                return convert(match)
        raise ValueError("no value")

    def _need(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = self._match(pattern)
        if match is None:
            raise ValueError("no key")
        return match

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _accept(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise ValueError(f"no {sign}")


def _number(match: re.Match[str]) -> Bare:
    return Decimal(match[0]) if match[1] else int(match[0])


def _binary(match: re.Match[str]) -> Bare:
    try:
        return base64.b64decode(match[1])
    except binascii.Error as error:
        raise ValueError("no base64") from error


_BARE: Final = (
    (_TOKEN, lambda match: match[0]),
    (_STRING, lambda match: _ESCAPE.sub(r"\1", match[1])),
    (_NUMBER, _number),
    (_BOOLEAN, lambda match: match[1] == "1"),
    (_BINARY, _binary),
)
