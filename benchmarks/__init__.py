"""Benchmarks: one file each, every figure beside a peer's or the bare limit's from the same run."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from platform import python_version


def report(title: str, rows: Sequence[Mapping[str, object]], figures: Mapping[str, object]) -> None:
    """Print a table for people and, as the last line, the figures as one JSON object."""
    print(f"\n{title}\n")
    if rows:
        _table(rows)
    print(json.dumps(figures))


def _table(rows: Sequence[Mapping[str, object]]) -> None:
    columns = list(rows[0])
    cells = [columns, *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for number, line in enumerate(cells):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("| " + " | ".join(padded) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print()


def versions(*packages: str) -> str:
    """Return the versions of packages, to stand above a table."""
    named = (f"{package} {version(package)}" for package in packages)
    return ", ".join((f"Python {python_version()}", *named))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
