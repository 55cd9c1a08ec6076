"""Rewrite the counts at the head of docs/coverage.md: `.venv/bin/python -m tests.inventory`."""

import re

from tests.inventory.page import COUNTS_HEADER, PAGE, counts, parse


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = re.compile(rf"^\| {COUNTS_HEADER[0]} \|.*\n(?:\|.*\n)*", re.MULTILINE)
    PAGE.write_text(table.sub(counts(parse(text)) + "\n", text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
