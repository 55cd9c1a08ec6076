"""Tables for markdown: cells that span are spread over the grid, tables for layout are undone."""

from typing import Final

import numpy as np
import turbohtml

from trapline.extract import compiled
from trapline.extract.outline import TAGS, Outline, tag_set

_PARTS: Final = "tbody,thead,tfoot,tr,td,th,caption"
_BLOCKS_IN_CELL: Final = "h1,h2,h3,h4,h5,h6,table,form,hr,figure,pre,article,section,blockquote,p+p"
_SPANNING: Final = "td[colspan],td[rowspan],th[colspan],th[rowspan]"
_HEADED: Final = "th,caption,thead"
SHOWN: Final = 0
SPANNED: Final = 1
LAYOUT: Final = 2
# What tags are to a table, for the compiled look at them. Whatever can make a table other than it
# seems, another table above all, is left to Python.
KINDS: Final = sum(
    (
        tag_set(tags) * np.uint8(kind)
        for kind, tags in (
            (1, "tr"),
            (2, "td th"),
            (4, "th caption thead"),
            (8, "form"),
            (16, "h1 h2 h3 h4 h5 h6 form hr figure pre article section blockquote"),
            (32, "p"),
            (64, "table template svg math script style link meta noscript object"),
        )
    ),
    start=np.zeros(len(TAGS), np.uint8),
).tobytes()
_MAX_SPAN: Final = 100
_MAX_CELLS: Final = 20_000


def arrange_tables(body: turbohtml.Element, outline: Outline) -> None:
    """Make every table one that a pipe table can show, or no table at all.

    The outline is that of the page, and of nothing that has left it.
    """
    tables = outline.elements("table", body)
    look = compiled.AVAILABLE and outline.is_whole()
    found = compiled.verdicts(outline, KINDS) if look else None
    # From the last on: a table in another one is arranged before it is looked at as a part of it.
    verdicts = map(verdict_on, reversed(tables)) if found is None else reversed(found)
    for table, verdict in zip(reversed(tables), verdicts, strict=True):
        if verdict == LAYOUT:
            _undo(table)
        elif verdict == SPANNED:
            _spread(table)


def verdict_on(table: turbohtml.Element) -> int:
    if _is_layout(table):
        return LAYOUT
    return SPANNED if table.select_one(_SPANNING) else SHOWN


def _is_layout(table: turbohtml.Element) -> bool:
    if (table.attr("role") or "").lower() in ("presentation", "none"):
        return True
    rows = table.find_all("tr")
    widest = max((len(_cells(row)) for row in rows), default=0)
    if widest <= 1:
        return True
    if table.select_one(_HEADED) and not table.select_one("table,form"):
        return False
    return len(rows) == 1 or table.select_one(_BLOCKS_IN_CELL) is not None


def _cells(row: turbohtml.Element) -> list[turbohtml.Element]:
    return [
        child
        for child in row.children
        if isinstance(child, turbohtml.Element) and child.tag in ("td", "th")
    ]


def _undo(table: turbohtml.Element) -> None:
    """Cells become blocks of their own, in reading order."""
    for part in table.select(_PARTS):
        if part.closest("table") == table:
            part.tag = "div"
    table.tag = "div"


def _span(cell: turbohtml.Element, name: str) -> int:
    """How far a cell reaches; the attribute that says so is gone then."""
    value = cell.attr(name)
    if value is None:
        return 1
    del cell.attrs[name]
    value = value.strip()
    return min(max(int(value), 1), _MAX_SPAN) if value.isdecimal() else 1


def _spread(table: turbohtml.Element) -> None:
    """Put an empty cell wherever a spanning one reaches."""
    reaching: dict[int, int] = {}
    budget = _MAX_CELLS
    for row in table.find_all("tr"):
        column = 0
        for cell in _cells(row):
            if reaching:
                column = _fill(cell, column, reaching)
            wide, tall = _span(cell, "colspan"), _span(cell, "rowspan")
            budget -= wide
            if budget < 0:
                return
            for _ in range(wide - 1):
                cell.insert_after(turbohtml.Element(cell.tag))
            if tall > 1:
                reaching |= dict.fromkeys(range(column, column + wide), tall)
            column += wide
        if reaching:
            reaching = _end(row, column, reaching)


def _fill(cell: turbohtml.Element, column: int, reaching: dict[int, int]) -> int:
    """Empty cells before `cell` for those that reach down from rows above."""
    while column in reaching and reaching[column] > 0:
        cell.insert_before(turbohtml.Element("td"))
        column += 1
    return column


def _end(row: turbohtml.Element, column: int, reaching: dict[int, int]) -> dict[int, int]:
    """Empty cells at the end of a row; what is left to reach further rows."""
    for place in sorted(place for place in reaching if place >= column):
        if place == column:
            row.append(turbohtml.Element("td"))
            column += 1
    return {place: left - 1 for place, left in reaching.items() if left > 1}
