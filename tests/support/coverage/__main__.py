"""Rewrite the counts in docs/coverage/README.md: `.venv/bin/python -m tests.support.coverage`."""

import re

from tests.support.coverage.page import COUNTS_HEADER, INDEX, PAGES, counts, read_pages


def main() -> None:
    text = INDEX.read_text(encoding="utf-8")
    table = re.compile(rf"^\| {COUNTS_HEADER[0]} \|.*\n(?:\|.*\n)*", re.MULTILINE)
    INDEX.write_text(table.sub(counts(read_pages(PAGES)) + "\n", text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
