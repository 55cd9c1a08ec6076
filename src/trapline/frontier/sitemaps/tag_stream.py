"""Streaming tokeniser of markup: lenient, and without entities of a DTD.

An XML parser stops at the first unescaped `&`, the most common fault of sitemaps.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

_LONGEST_TAG = 16_384
_SHORTEST_SURE = len("<![CDATA[")
_LONGEST_ENTITY = len("&#1114111;")
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ATTRIBUTE = re.compile(r"([^\s=\"'/<>]{1,64})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class TokenKind(Enum):
    OPEN = auto()
    CLOSE = auto()
    TEXT = auto()


class Token(NamedTuple):
    """`name` is lower case, without its prefix; `body` is the text, or what follows the name."""

    kind: TokenKind
    name: str
    body: str

    @property
    def is_empty_element(self) -> bool:
        return self.body.endswith("/")

    def attributes(self) -> dict[str, str]:
        found = _ATTRIBUTE.findall(self.body)
        return {name.lower(): unescaped(double or single) for name, double, single in found}


class Scanner:
    """Takes pieces of text and returns tokens; it buffers at most one unfinished tag."""

    def __init__(self) -> None:
        self._rest = ""
        self._skip_to: str | None = None
        self._keeps_skipped = False

    def feed(self, text: str) -> Iterator[Token]:
        text = self._rest + text
        self._rest = ""
        at = 0
        while at < len(text):
            if self._skip_to is not None:
                at, skipped = self._skipped(text, at, self._skip_to)
                if skipped:
                    yield Token(TokenKind.TEXT, "", skipped)
                continue
            start = text.find("<", at)
            if start < 0:
                start = self._sure_end(text, at)
            if start > at:
                yield Token(TokenKind.TEXT, "", unescaped(text[at:start]))
            if self._rest or start == len(text):
                return
            at, token = self._tag(text, start)
            if token is not None:
                yield token

    def _sure_end(self, text: str, at: int) -> int:
        """Where the text ends for now: an entity may be cut in two by the edge of the piece."""
        entity = text.rfind("&", max(at, len(text) - _LONGEST_ENTITY))
        if entity < 0 or ";" in text[entity:]:
            return len(text)
        self._rest = text[entity:]
        return entity

    def _skipped(self, text: str, at: int, end: str) -> tuple[int, str]:
        """Pass over a comment or a CDATA section, of which the latter is text."""
        found = text.find(end, at)
        if found < 0:
            # The end may be cut in two by the edge of the piece.
            keep = max(at, len(text) - len(end) + 1)
            self._rest = text[keep:]
            return len(text), text[at:keep] if self._keeps_skipped else ""
        self._skip_to = None
        return found + len(end), text[at:found] if self._keeps_skipped else ""

    def _tag(self, text: str, start: int) -> tuple[int, Token | None]:
        if text.startswith(("<!", "<?"), start):
            return self._declaration(text, start), None
        end = text.find(">", start)
        if end < 0:
            return self._unfinished(text, start)
        # `a<b</loc>`: the tag begins at the last `<`, and what is before it is text.
        begin = text.rfind("<", start, end)
        if begin > start:
            return begin, Token(TokenKind.TEXT, "", unescaped(text[start:begin]))
        return end + 1, _token(text[start + 1 : end])

    def _unfinished(self, text: str, start: int) -> tuple[int, Token | None]:
        if len(text) - start > _LONGEST_TAG:
            return start + 1, Token(TokenKind.TEXT, "", "<")
        self._rest = text[start:]
        return len(text), None

    def _declaration(self, text: str, start: int) -> int:
        if len(text) - start < _SHORTEST_SURE:
            self._rest = text[start:]
            return len(text)
        self._keeps_skipped = text.startswith("<![CDATA[", start)
        if self._keeps_skipped:
            self._skip_to = "]]>"
            return start + _SHORTEST_SURE
        if text.startswith("<!--", start):
            self._skip_to = "-->"
            return start + len("<!--")
        return self._doctype(text, start)

    def _doctype(self, text: str, start: int) -> int:
        end, subset = text.find(">", start), text.find("[", start)
        if end < 0 and subset < 0 and len(text) - start <= _LONGEST_TAG:
            self._rest = text[start:]
            return len(text)
        self._skip_to = "]>" if subset >= 0 and (subset < end or end < 0) else ">"
        return start + 1


@lru_cache(maxsize=256)
def _token(tag: str) -> Token | None:
    kind = TokenKind.CLOSE if tag.startswith("/") else TokenKind.OPEN
    name, _, body = tag.removeprefix("/").replace("\n", " ").replace("\t", " ").partition(" ")
    local = name.removesuffix("/").rpartition(":")[2].lower()
    if name.endswith("/"):
        body = "/"
    return Token(kind, local.strip(), body.rstrip()) if local else None


def unescaped(text: str) -> str:
    """The five entities of XML and numbers; any other `&` stands for itself."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(entity: re.Match[str]) -> str:
    if entity[1]:
        return _NAMED[entity[1]]
    point = int(entity[2]) if entity[2] else int(entity[3], 16)
    return chr(point) if 0 < point <= _LAST_CODE_POINT and point not in _SURROGATES else "\ufffd"
