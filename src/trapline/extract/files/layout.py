"""From the lines of pages to blocks: what is a heading, a paragraph, an item, a table."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trapline.extract.files.blocks import Block, BlockKind, heading, page, paragraph, table

_ITEM = re.compile(r"^(?:([•◦▪●■‣\u2013\u2014*·\uf0b7-])|(\d{1,3}|[a-z])[.)])\s+(?=\S)")
_DIGITS = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxlc]{1,7}")
_LEADER = re.compile(r"\s*(?:\.\s?){4,}\s*")
_SENTENCE_END = (".", ":", "!", "?", "…", "。")
_MAX_HEADING = 160
_LARGER = 1.12
_SAME_COLUMN = 12.0
_FURNITURE_LINES = 2
_FURNITURE_PAGES = 4
_APART = 1.9


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page: its cells (one, unless gaps split it) and where they stand."""

    cells: tuple[str, ...]
    starts: tuple[float, ...] = ()
    right: float = 0.0
    top: float = 0.0
    height: float = 0.0
    bold: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.cells)


@dataclass(frozen=True, slots=True)
class Furniture:
    """Running heads and page numbers: texts, and places, that most pages have at their edge."""

    texts: frozenset[str] = frozenset()
    tops: frozenset[int] = frozenset()

    def has(self, line: Line) -> bool:
        """Whether a line at a page's edge is furniture."""
        text = line.text
        is_numbered = text[:1].isdigit() or text[-1:].isdigit() or bool(_ROMAN.fullmatch(text))
        return _numberless(text) in self.texts or (is_numbered and round(line.top) in self.tops)


def furniture(pages: list[list[Line]]) -> Furniture:
    """What stands apart at the edge of more than half of all pages."""
    if len(pages) < _FURNITURE_PAGES:
        return Furniture()
    texts: Counter[str] = Counter()
    tops: Counter[int] = Counter()
    for lines in pages:
        edge = [lines[index] for index in _edges(lines)]
        texts.update({_numberless(line.text) for line in edge})
        tops.update({round(line.top) for line in edge if line.height})
    most = len(pages) / 2
    return Furniture(
        frozenset(text for text, count in texts.items() if count > most),
        frozenset(top for top, count in tops.items() if count > most),
    )


def _numberless(text: str) -> str:
    return _DIGITS.sub("#", text)


def _edges(lines: list[Line]) -> set[int]:
    """The lines at the top and the bottom that a gap parts from the text between them."""
    return _edge(lines, 0, 1) | _edge(lines, len(lines) - 1, -1)


def _edge(lines: list[Line], start: int, step: int) -> set[int]:
    for count in range(1, min(_FURNITURE_LINES + 1, len(lines))):
        outer, inner = lines[start + (count - 1) * step], lines[start + count * step]
        if abs(outer.top - inner.top) > _APART * max(outer.height, 1.0) or not outer.height:
            return {start + place * step for place in range(count)}
    return set()


def blocks_of(
    pages: list[list[Line]], outline: Mapping[int, Mapping[str, int]], repeated: Furniture
) -> Iterator[Block]:
    """The blocks of all pages; a page marker stands before each page."""
    sizes = _HeadingSizes([line for lines in pages for line in lines])
    for number, lines in enumerate(pages):
        yield page(number + 1)
        edges = _edges(lines)
        kept = [
            line for index, line in enumerate(lines) if index not in edges or not repeated.has(line)
        ]
        yield from _page_blocks(kept, sizes, outline.get(number, {}))


class _HeadingSizes:
    """Which sizes of type are headings, and of which level."""

    def __init__(self, lines: list[Line]) -> None:
        weight: Counter[float] = Counter()
        for line in lines:
            weight[line.height] += len(line.text)
        self._body = weight.most_common(1)[0][0] if weight else 0.0
        larger = sorted((size for size in weight if size > self._body * _LARGER), reverse=True)
        self._levels = {size: min(rank, 6) for rank, size in enumerate(_merged(larger), 1)}
        self._all = larger

    def level(self, line: Line) -> int:
        """The level of a line that is a heading by its looks; 0 for any other."""
        text = line.text
        if not line.height or len(text) > _MAX_HEADING or not any(map(str.isalpha, text)):
            return 0
        if line.height > self._body * _LARGER:
            near = [level for size, level in self._levels.items() if size * 0.95 <= line.height]
            return min(near, default=len(self._levels) or 1)
        # A bold line of body size that does not end a sentence heads what follows.
        is_short = len(line.cells) == 1 and len(text) < _MAX_HEADING / 2
        bold_heading = line.bold and is_short and not text.endswith(_SENTENCE_END[:1])
        return min(len(self._levels) + 1, 6) if bold_heading else 0


def _merged(sizes: list[float]) -> list[float]:
    """Sizes without those that differ from their larger neighbour by less than a twentieth."""
    kept: list[float] = []
    for size in sizes:
        if not kept or size < kept[-1] * 0.95:
            kept.append(size)
    return kept


def _page_blocks(
    lines: list[Line], sizes: _HeadingSizes, outline: Mapping[str, int]
) -> Iterator[Block]:
    index = 0
    while index < len(lines):
        rows = _table_rows(lines, index)
        if rows:
            yield table(line.cells for line in rows)
            index += len(rows)
            continue
        line = lines[index]
        level = outline.get(" ".join(line.text.split()).lower()) or sizes.level(line)
        end = (
            _end_of(lines, index, sizes, outline)
            if not level
            else _end_of_heading(lines, index, sizes, level)
        )
        yield _block(lines[index:end], level)
        index = end


def _table_rows(lines: list[Line], index: int) -> list[Line]:
    """The lines from here on whose cells stand in the same columns; two at least."""
    first = lines[index]
    if len(first.cells) < 2:  # noqa: PLR2004 - columns
        return []
    rows = [first]
    for line in lines[index + 1 :]:
        if len(line.cells) != len(first.cells) or not _aligned(first, line):
            break
        rows.append(line)
    return rows if len(rows) > 1 else []


def _aligned(first: Line, other: Line) -> bool:
    pairs = zip(first.starts, other.starts, strict=True)
    close = sum(abs(one - two) <= _SAME_COLUMN for one, two in pairs)
    return close * 3 >= len(first.starts) * 2


def _end_of(lines: list[Line], index: int, sizes: _HeadingSizes, outline: Mapping[str, int]) -> int:
    """Where the paragraph that begins with a line ends."""
    widest = max((line.right for line in lines), default=0.0)
    end = index + 1
    while end < len(lines):
        before, line = lines[end - 1], lines[end]
        is_new = (
            _begins_anew(before, line, widest)
            or sizes.level(line)
            or " ".join(line.text.split()).lower() in outline
            or _table_rows(lines, end)
        )
        if is_new:
            break
        end += 1
    return end


def _end_of_heading(lines: list[Line], index: int, sizes: _HeadingSizes, level: int) -> int:
    """A heading may run over two or three lines of one size, close together."""
    end = index + 1
    while end < min(len(lines), index + 3):
        before, line = lines[end - 1], lines[end]
        gap = before.top - line.top
        if (
            line.height != before.height
            or sizes.level(line) != level
            or not 0 < gap < line.height * 1.6
        ):
            break
        end += 1
    return end


def _begins_anew(before: Line, line: Line, widest: float) -> bool:
    if _ITEM.match(line.text) or _LEADER.search(before.text):
        return True
    if not line.height or not before.height:
        # Without geometry a line that ends a sentence ends the paragraph.
        return before.text.endswith(_SENTENCE_END)
    gap = before.top - line.top
    if gap > 1.75 * max(line.height, before.height) or abs(line.height - before.height) > 1.5:  # noqa: PLR2004 - points
        return True
    if gap < 0:
        # The text went up: a new column, in which a sentence may go on.
        return before.text.endswith(_SENTENCE_END)
    ends_early = before.right < widest - 4 * line.height
    return ends_early and before.text.endswith(_SENTENCE_END)


def _block(lines: list[Line], level: int) -> Block:
    text = _joined(lines)
    if level:
        return heading(text, level)
    if match := _ITEM.match(text):
        return Block(BlockKind.ITEM, text[match.end() :], ordered=match.group(2) is not None)
    return paragraph(text)


def _joined(lines: list[Line]) -> str:
    """Lines as one text; words that a line break has cut are made whole."""
    text = ""
    for line in lines:
        part = line.text
        cut = text.endswith("-") and text[-2:-1].isalpha() and part[:1].islower()
        if cut or text.endswith("\u00ad"):
            text = text[:-1] + part
        else:
            text = f"{text} {part}" if text else part
    return _LEADER.sub(" … ", text.replace("\u00ad", ""))
