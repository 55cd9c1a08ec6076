"""Markdown blocks with their offsets.

A line scanner, not a parser: it finds only block boundaries, and accepts any text. Blocks are in
order and do not overlap; only white space lies between them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*#*[ \t]*$")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*(?::?-+:?)?[ \t]*$")


class BlockKind(Enum):
    HEADING = auto()
    TEXT = auto()
    LIST = auto()
    TABLE = auto()
    CODE = auto()


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """`markdown[start:end]`; a heading has a level from 1 to 6 and its words."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def blank(self) -> bool:
        return not self.text.strip()


def blocks(markdown: str) -> Iterator[MarkdownBlock]:
    lines = _lines(markdown)
    at = 0
    while at < len(lines):
        if lines[at].blank:
            at += 1
            continue
        kind = _kind_at(lines, at)
        after = _ENDS[kind](lines, at)
        level, title = _heading(lines[at].text) if kind is BlockKind.HEADING else (0, "")
        yield MarkdownBlock(kind, lines[at].start, lines[after - 1].end, level, title)
        at = after


def _lines(markdown: str) -> list[_Line]:
    found, at = [], 0
    for text in markdown.split("\n"):
        found.append(_Line(at, text))
        at += len(text) + 1
    return found


def _kind_at(lines: list[_Line], at: int) -> BlockKind:
    text = lines[at].text
    if _FENCE.match(text):
        return BlockKind.CODE
    if _HEADING.match(text):
        return BlockKind.HEADING
    if "|" in text and at + 1 < len(lines) and _TABLE_RULE.match(lines[at + 1].text):
        return BlockKind.TABLE
    return BlockKind.LIST if _ITEM.match(text) else BlockKind.TEXT


def _heading(text: str) -> tuple[int, str]:
    match = _HEADING.match(text)
    return (len(match[1]), (match[2] or "").strip()) if match else (0, "")


def _code_end(lines: list[_Line], at: int) -> int:
    match = _FENCE.match(lines[at].text)
    fence = match[1] if match else "```"
    for after in range(at + 1, len(lines)):
        closing = lines[after].text.strip()
        if closing.startswith(fence) and not closing.strip(fence[0]):
            return after + 1
    return len(lines)


def _table_end(lines: list[_Line], at: int) -> int:
    after = at + 2
    while after < len(lines) and "|" in lines[after].text:
        after += 1
    return after


def _list_end(lines: list[_Line], at: int) -> int:
    """A list continues over blank lines while items or indented lines follow."""
    after = last = at + 1
    while after < len(lines):
        line = lines[after]
        if not line.blank:
            joined = after == last or line.text[:1] in " \t" or _ITEM.match(line.text)
            if not joined or _kind_at(lines, after) is BlockKind.HEADING:
                break
            last = after + 1
        after += 1
    return last


def _text_end(lines: list[_Line], at: int) -> int:
    after = at + 1
    while after < len(lines) and not lines[after].blank:
        if _kind_at(lines, after) is not BlockKind.TEXT:
            break
        after += 1
    return after


_ENDS: Final = {
    BlockKind.HEADING: lambda _, at: at + 1,
    BlockKind.CODE: _code_end,
    BlockKind.TABLE: _table_end,
    BlockKind.LIST: _list_end,
    BlockKind.TEXT: _text_end,
}
