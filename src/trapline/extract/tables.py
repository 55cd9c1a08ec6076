"""Tables for markdown: cells that span are spread over the grid, tables for layout are undone."""

from collections.abc import Sequence
from typing import Final

import turbohtml

_PARTS: Final = "tbody,thead,tfoot,tr,td,th,caption"
_BLOCKS_IN_CELL: Final = "h1,h2,h3,h4,h5,h6,table,form,hr,figure,pre,article,section,blockquote,p+p"
_HEADED: Final = "th,caption,thead"
_MAX_SPAN: Final = 100
_MAX_CELLS: Final = 20_000


def arrange_tables(tables: Sequence[turbohtml.Element]) -> None:
    """Make every table, in their order, one that a pipe table can show, or no table at all."""
    for table in reversed(tables):
        if _is_layout(table):
            _undo(table)
        elif table.select_one("[colspan],[rowspan]"):
            _spread(table)


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
    value = (cell.attr(name) or "").strip()
    return min(max(int(value), 1), _MAX_SPAN) if value.isdecimal() else 1


def _spread(table: turbohtml.Element) -> None:
    """Put an empty cell wherever a spanning one reaches."""
    reaching: dict[int, int] = {}
    budget = _MAX_CELLS
    for row in table.find_all("tr"):
        column = 0
        for cell in _cells(row):
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
            for name in ("colspan", "rowspan"):
                if name in cell.attrs:
                    del cell.attrs[name]
        for place in sorted(place for place in reaching if place >= column):
            if place == column:
                row.append(turbohtml.Element("td"))
                column += 1
        reaching = {place: left - 1 for place, left in reaching.items() if left > 1}


def _fill(cell: turbohtml.Element, column: int, reaching: dict[int, int]) -> int:
    """Empty cells before `cell` for those that reach down from rows above."""
    while column in reaching and reaching[column] > 0:
        cell.insert_before(turbohtml.Element("td"))
        column += 1
    return column
