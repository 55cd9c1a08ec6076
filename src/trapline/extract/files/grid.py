"""A sheet as it fills: sparse cells in, a dense table without empty edges out."""

from trapline.extract.files.blocks import Block, table
from trapline.extract.files.reader_result import Limits

MAX_CELLS = 500_000
_MAX_TABLE = 1_000_000


class Grid:
    """Collects the cells of one sheet after the other, within one limit for the whole file."""

    def __init__(self, limits: Limits) -> None:
        self._left = MAX_CELLS
        self._characters = limits.characters
        self._cells: dict[int, dict[int, str]] = {}
        self.warning: str | None = None

    def start(self) -> None:
        self._cells = {}

    @property
    def is_empty(self) -> bool:
        return not self._cells

    def put(self, row: int, column: int, text: str) -> bool:
        """Keep a cell; False when the file's limit is reached."""
        if self._left <= 0 or self._characters <= 0:
            self.warning = "The file has more cells than the limit; the rest was left out."
            return False
        self._left -= 1
        self._characters -= len(text)
        self._cells.setdefault(row, {})[column] = text
        return True

    def table(self) -> Block:
        """The rows and columns that have anything in them."""
        columns = sorted({column for row in self._cells.values() for column in row})
        most = max(1, _MAX_TABLE // max(1, len(columns)))
        if len(self._cells) > most:
            self.warning = "A sheet is too sparse to be laid out whole; the rest was left out."
        rows = [self._cells[number] for number in sorted(self._cells)[:most]]
        return table([row.get(column, "") for column in columns] for row in rows)
