"""Reads the written pages: Markdown files with front matter, and TOML tables."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.site.prose import Prose, markdown

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Source:
    """One file: its name, its front matter and its text."""

    slug: str
    meta: dict[str, str]
    text: str

    @property
    def title(self) -> str:
        return self.meta["title"]

    @property
    def summary(self) -> str:
        return self.meta.get("summary", "")

    @property
    def layout(self) -> str:
        return self.meta.get("layout", "")

    @property
    def order(self) -> int:
        return int(self.meta.get("order", "0"))

    @property
    def date(self) -> datetime:
        return datetime.fromisoformat(self.meta.get("date", "2024-03-01")).replace(
            hour=9, tzinfo=UTC
        )

    @cached_property
    def prose(self) -> Prose:
        return markdown(self.text)

    def words(self, name: str) -> list[str]:
        """Return a comma-separated field as a list."""
        return [word.strip() for word in self.meta.get(name, "").split(",") if word.strip()]


def read(section: str) -> list[Source]:
    """Return the Markdown files of a folder of `pages/`, in the order of their names."""
    return [
        parse(path.stem, path.read_text("utf-8")) for path in sorted((PAGES / section).glob("*.md"))
    ]


def table(name: str) -> list[dict[str, Any]]:
    """Return the `[[entry]]` tables of `pages/NAME.toml`."""
    entries: list[dict[str, Any]] = tomllib.loads((PAGES / f"{name}.toml").read_text("utf-8"))[
        "entry"
    ]
    return entries


def parse(slug: str, text: str) -> Source:
    """Split front matter (`key: value` lines between two `---`) from the text below it."""
    _, front, body = text.split("---\n", 2)
    pairs = (line.partition(":") for line in front.splitlines() if line.strip())
    return Source(slug, {name.strip(): value.strip() for name, _, value in pairs}, body.strip())
