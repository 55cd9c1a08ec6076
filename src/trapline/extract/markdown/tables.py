"""Tables for markdown: cells that span are spread over the grid, tables for layout are undone."""

from typing import Final

import turbohtml

from trapline.extract.html.outline import Outline

_PARTS: Final = "tbody,thead,tfoot,tr,td,th,caption"
_BLOCKS_IN_CELL: Final = "h1,h2,h3,h4,h5,h6,table,form,hr,figure,pre,article,section,blockquote,p+p"
_SPANNING: Final = "td[colspan],td[rowspan],th[colspan],th[rowspan]"
_HEADED: Final = "th,caption,thead"
_CELLS: Final = ("td", "th")
_MAX_SPAN: Final = 100
_MAX_CELLS: Final = 20_000


def arrange_tables(body: turbohtml.Element, outline: Outline) -> None:
    """Make every table one that a pipe table can show, or no table at all.

    The outline is that of the page, and of nothing that has left it.
    """
    # From the last on: a nested table is arranged before the table around it is looked at.
    for table in reversed(outline.elements("table", body)):
        if _is_layout(table):
            _undo(table)
        elif table.select_one(_SPANNING):
            _spread(table)


def _is_layout(table: turbohtml.Element) -> bool:
    if (table.attr("role") or "").lower() in ("presentation", "none"):
        return True
    rows = table.find_all("tr")
    if not any(map(_has_columns, rows)):
        return True
    if table.select_one(_HEADED) and not table.select_one("table,form"):
        return False
    return len(rows) == 1 or table.select_one(_BLOCKS_IN_CELL) is not None


def _has_columns(row: turbohtml.Element) -> bool:
    """Whether a row has more than one cell; most rows tell by their first children."""
    cells = 0
    for child in row.children:
        cells += isinstance(child, turbohtml.Element) and child.tag in _CELLS
        if cells > 1:
            return True
    return False


def _cells(row: turbohtml.Element) -> list[turbohtml.Element]:
    return [
        child
        for child in row.children
        if isinstance(child, turbohtml.Element) and child.tag in _CELLS
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
