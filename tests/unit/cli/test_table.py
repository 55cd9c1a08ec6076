"""Tables fit the terminal: ids, states and counts stay whole, less important columns go first."""

import io
import re

import pytest
from rich.console import Console

from trapline.cli import table

JOB = "01a1e3c5-c553-7365-8016-cdcb07ab8c80"
URL = "https://example.com/handbook/a-rather-long-section-name/returns-and-refunds.html"
ROWS = [
    {"id": JOB, "status": "completed", "kind": "crawl", "done": "257", "url": URL,
     "created at": "2026-11-16 10:12:03 UTC", "skipped": "12"},
    {"id": JOB, "status": "running", "kind": "scrape", "done": "1", "url": "-",
     "created at": "2026-11-16 10:12:03 UTC", "skipped": "0"},
]  # fmt: skip


def printed(width: int) -> tuple[str, list[str]]:
    out = io.StringIO()
    built, hidden = table.build(ROWS, width)
    Console(file=out, width=width).print(built)
    return out.getvalue(), hidden


@pytest.mark.parametrize("width", [80, 100, 160, 10_000])
def test_ids_states_and_counts_stay_whole(width: int) -> None:
    text, _ = printed(width)
    assert text.count(JOB) == 2
    assert "completed" in text
    assert all(len(line.rstrip()) <= width for line in text.splitlines())


def test_short_columns_go_from_the_right_and_urls_are_folded() -> None:
    text, hidden = printed(80)
    assert hidden == ["kind", "done", "created at", "skipped"]
    assert re.sub(r"\s", "", text).count("https://example.com") == 1
    assert printed(100)[1] == ["created at", "skipped"]
    assert printed(160)[1] == []


def test_a_pipe_gets_every_column_in_whole_lines() -> None:
    text, hidden = printed(10_000)
    assert hidden == []
    assert URL in text
    assert len(text.splitlines()) == 3


def test_brackets_are_text() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(table.build([{"title": "[bold] news [/x]"}], 80)[0])
    assert "[bold] news [/x]" in out.getvalue()


def test_the_first_column_is_always_there() -> None:
    built, hidden = table.build(ROWS, 10)
    assert [column.header for column in built.columns] == ["id"]
    assert len(hidden) == 6
