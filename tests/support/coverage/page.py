"""The pages of docs/coverage as rows, and the counts in their index."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.support.paths import DOCS

INDEX = DOCS / "coverage" / "README.md"
PAGES = sorted((DOCS / "coverage").glob("[0-9]*.md"))

HEADER = ["what", "where it lives here", "proof"]
COUNTS_HEADER = [
    "document", "rows", "a place, with proof", "a place, no proof yet", "not yet", "next", "decided against",
]  # fmt: skip

_RULE = re.compile(r"\|[\s:|-]+\|")
_CELL = re.compile(r"(?<!\\)\|")
_REFERENCE = re.compile(r"`([^`]*)`")
_NOT_YET = re.compile(r"not yet(; planned: \S.*)?")
_NEXT = re.compile(r"next: \S.*")
_DECIDED = re.compile(r"decided against: \S.*")


class State(Enum):
    PROVEN = "a place, with proof"
    PLACED = "a place, no proof yet"
    NOT_YET = "not yet"
    NEXT = "next"
    DECIDED_AGAINST = "decided against"


@dataclass(frozen=True, slots=True)
class Row:
    page: str
    line: int
    document: str
    what: str
    place: str
    proof: str

    @property
    def location(self) -> str:
        """The row as a message names it."""
        return f"{self.page}:{self.line}, {self.name}"

    @property
    def name(self) -> str:
        """What the row is about, without its note."""
        return self.what.partition(" — ")[0].replace("`", "")

    @property
    def state(self) -> State:
        if self.place.startswith("not yet"):
            return State.NOT_YET
        if self.place.startswith("next"):
            return State.NEXT
        if self.place.startswith("decided against"):
            return State.DECIDED_AGAINST
        return State.PLACED if self.proof == "not yet" else State.PROVEN

    @property
    def references(self) -> list[str]:
        """What the row claims to exist: every backticked name but those of its first cell."""
        return _REFERENCE.findall(self.place) + _REFERENCE.findall(self.proof)


class UnreadablePage(ValueError):
    """A table of a page does not have the form that the index describes."""


def read_pages(pages: Iterable[Path]) -> list[Row]:
    return [row for page in pages for row in parse(page.read_text(encoding="utf-8"), page.name)]


def parse(text: str, page: str = "page") -> list[Row]:
    rows: list[Row] = []
    document = ""
    header: list[str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("# "):
            document = line.removeprefix("# ").strip()
        if not line.lstrip().startswith("|"):
            header = None
        elif header is None:
            header = _header(number, line)
        elif header == HEADER and not _RULE.fullmatch(line.strip()):
            rows.append(_row(page, number, document, line))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL.split(line.strip())[1:-1]]


def _header(number: int, line: str) -> list[str]:
    cells = _cells(line)
    if cells != HEADER:
        raise UnreadablePage(f"line {number}: a table with the columns {cells}")
    return cells


def _row(page: str, number: int, document: str, line: str) -> Row:
    cells = _cells(line)
    if len(cells) != len(HEADER) or not all(cells):
        raise UnreadablePage(f"line {number}: a row needs three filled cells, this has {cells}")
    return Row(page, number, document, *cells)


def wrong_states(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if not _has_right_place(row):
            yield f"{row.location}: {row.place!r} is none of the four states"
        elif not _has_right_proof(row):
            yield f"{row.location}: {row.proof!r} is no proof for that state"


def _has_right_place(row: Row) -> bool:
    match row.state:
        case State.NOT_YET:
            return _NOT_YET.fullmatch(row.place) is not None
        case State.NEXT:
            return _NEXT.fullmatch(row.place) is not None
        case State.DECIDED_AGAINST:
            return _DECIDED.fullmatch(row.place) is not None
        case State.PLACED | State.PROVEN:
            return _REFERENCE.search(row.place) is not None


def _has_right_proof(row: Row) -> bool:
    match row.state:
        case State.NOT_YET | State.PLACED:
            return row.proof == "not yet"
        case State.NEXT:
            return row.proof == "next"
        case State.DECIDED_AGAINST:
            return row.proof == "—" or _is_proof(row.proof)
        case State.PROVEN:
            return _is_proof(row.proof)


def _is_proof(cell: str) -> bool:
    return any(
        (reference.startswith("tests/") and "::" in reference)
        or reference.startswith("benchmarks/")
        for reference in _REFERENCE.findall(cell)
    )


def repeated(rows: Iterable[Row]) -> list[str]:
    seen = Counter((row.document, row.name) for row in rows)
    return [
        f"{document}: {name} is listed {n} times" for (document, name), n in seen.items() if n > 1
    ]


def counts(rows: list[Row]) -> str:
    """Return the table of counts that belongs in the index."""
    documents = dict.fromkeys(row.document for row in rows)
    lines = [
        _line(COUNTS_HEADER),
        "|" + "---|" * len(COUNTS_HEADER),
        *(_count(title, [row for row in rows if row.document == title]) for title in documents),
        _count("all", rows),
    ]
    return "\n".join(lines)


def _count(title: str, rows: list[Row]) -> str:
    states = Counter(row.state for row in rows)
    return _line([title, str(len(rows)), *(str(states[state]) for state in State)])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
