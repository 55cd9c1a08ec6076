"""Tables for a terminal: columns that do not fit are left out from the right; ids and counts never break."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

_GAP = 1
_LONGEST_RIGID = 40  # an id has 36 characters
_LEAST_FLEXIBLE = 24


def build(rows: Sequence[Mapping[str, str]], width: int) -> tuple[Table, list[str]]:
    """Return a table of this width, and the columns that it leaves out.

    A column of long texts, such as URLs, is folded; every other one keeps its cells in one line.
    """
    widths = {name: max(_length(row[name]) for row in (*rows, {name: name})) for name in rows[0]}
    shown = _fitting(widths, width)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in shown:
        rigid = _is_rigid(widths[name])
        least = None if rigid else min(_LEAST_FLEXIBLE, widths[name])
        table.add_column(name, no_wrap=rigid, overflow="fold", min_width=least)
    for row in rows:
        # As Text, because a string may hold brackets that Rich takes for markup.
        table.add_row(*(Text(row[name]) for name in shown))
    return table, [name for name in widths if name not in shown]


def _length(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _is_rigid(width: int) -> bool:
    return width <= _LONGEST_RIGID


def _fitting(widths: Mapping[str, int], width: int) -> list[str]:
    """Return the columns that fit: short ones are dropped from the right, then long ones."""
    shown = list(widths)
    while len(shown) > 1 and _least_width(widths, shown) > width:
        short = [name for name in shown[1:] if _is_rigid(widths[name])]
        shown.remove((short or shown)[-1])
    return shown


def _least_width(widths: Mapping[str, int], shown: Sequence[str]) -> int:
    least = (
        widths[name] if _is_rigid(widths[name]) else min(_LEAST_FLEXIBLE, widths[name])
        for name in shown
    )
    return sum(least) + _GAP * 2 * (len(shown) - 1)
