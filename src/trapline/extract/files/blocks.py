"""The neutral form between a file format and Markdown: headings, paragraphs, items, tables."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

_MARKS = re.compile(r"([\\`*\[\]<])|(?<![^\W_])(_)|(_)(?![^\W_])")
_LINE_START = re.compile(r"^(\s*)(?:(#{1,6}|[-+>])(?=\s)|(\d{1,9})([.)])(?=\s))")
_MAX_LEVEL = 6


class BlockKind(StrEnum):
    """What a block is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    TABLE = "table"
    CODE = "code"
    MARKDOWN = "markdown"
    """Already Markdown: a chapter of a book, a Markdown file."""
    PAGE = "page"
    """The beginning of page or slide number `level`."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `text` is plain; `markup` is the same as inline Markdown where they differ."""

    kind: BlockKind
    text: str = ""
    markup: str | None = None
    level: int = 0
    ordered: bool = False
    rows: tuple[tuple[str, ...], ...] = ()
    language: str = ""
    """The language of code."""


def heading(text: str, level: int = 1) -> Block:
    return Block(BlockKind.HEADING, " ".join(text.split()), level=max(1, min(level, _MAX_LEVEL)))


def paragraph(text: str, markup: str | None = None) -> Block:
    return Block(BlockKind.PARAGRAPH, text, markup)


def table(rows: Iterable[Iterable[str]]) -> Block:
    return Block(BlockKind.TABLE, rows=tuple(tuple(row) for row in rows))


def page(number: int) -> Block:
    return Block(BlockKind.PAGE, level=number)


def escaped(text: str) -> str:
    """Plain text as inline Markdown: what would be read as markup is escaped."""
    return _MARKS.sub(lambda match: "\\" + match.group(), text)


def render_text(blocks: Iterable[Block]) -> str:
    """The plain text of some blocks, without any markup."""
    parts: list[str] = []
    for block in blocks:
        if block.kind is BlockKind.TABLE:
            parts.append("\n".join("\t".join(map(_one_line, row)) for row in block.rows))
        elif block.kind is not BlockKind.PAGE:
            parts.append(block.text)
    return "\n\n".join(part for part in parts if part.strip()).strip()


def render_markdown(blocks: Iterable[Block], *, page_markers: bool = False) -> str:
    """The Markdown of some blocks."""
    parts: list[str] = []
    previous: Block | None = None
    number = _Numbers()
    for block in blocks:
        made = _markdown(block, number.of(block), page_markers=page_markers)
        if not made:
            continue
        is_next_item = previous is not None and _continues(previous, block)
        parts += ["\n" if is_next_item else "\n\n", made]
        previous = block
    return "".join(parts).strip("\n")


def _continues(previous: Block, block: Block) -> bool:
    """Whether an item belongs to the list of the one before it."""
    both = previous.kind is block.kind is BlockKind.ITEM
    return both and (previous.level != block.level or previous.ordered == block.ordered)


class _Numbers:
    """Counts the items of lists, level by level; a change of bullets begins a new list."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[bool, int]] = {}

    def of(self, block: Block) -> int:
        if block.kind is not BlockKind.ITEM:
            self._counts.clear()
            return 0
        for deeper in [level for level in self._counts if level > block.level]:
            del self._counts[deeper]
        ordered, count = self._counts.get(block.level, (block.ordered, 0))
        count = count + 1 if ordered == block.ordered else 1
        self._counts[block.level] = block.ordered, count
        return count


def _markdown(block: Block, number: int, *, page_markers: bool) -> str:
    if block.kind is BlockKind.PAGE:
        return f"<!-- page {block.level} -->" if page_markers else ""
    if block.kind is BlockKind.TABLE:
        return _table(block.rows)
    if block.kind is BlockKind.CODE:
        return _fenced(block.text, block.language)
    if block.kind is BlockKind.MARKDOWN:
        return (block.markup or block.text).strip("\n")
    return _inline(block, number)


def _inline(block: Block, number: int) -> str:
    inline = block.markup if block.markup is not None else escaped(block.text)
    if block.kind is BlockKind.PARAGRAPH or not inline.strip():
        return _safe_lines(inline)
    if block.kind is BlockKind.HEADING:
        return f"{'#' * block.level} {_one_line(inline)}"
    bullet = f"{number}." if block.ordered else "-"
    return f"{'    ' * block.level}{bullet} {_one_line(inline)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _safe_lines(inline: str) -> str:
    lines = (line.rstrip() for line in inline.strip().split("\n"))
    return "  \n".join(_LINE_START.sub(_escape_start, line) for line in lines if line)


def _escape_start(match: re.Match[str]) -> str:
    indent, mark, digits, stop = match.groups()
    return f"{indent}\\{mark}" if mark else f"{indent}{digits}\\{stop}"


def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    width = max((len(row) for row in rows), default=0)
    if not width:
        return ""
    lines = [_row(row, width) for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * width) + " |")
    return "\n".join(lines)


def _row(cells: tuple[str, ...], width: int) -> str:
    made = [_one_line(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in cells]
    return "| " + " | ".join(made + [""] * (width - len(made))) + " |"


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
