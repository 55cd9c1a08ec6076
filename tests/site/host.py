"""One host name of the site: its pages, its endless areas and its rules for robots."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.site.page import Page
from tests.site.rules import OPEN, Rules

PageFor = Callable[[str], Page | None]


@dataclass(frozen=True, slots=True)
class Family:
    """Pages that are made when asked for, because there are too many of them to list."""

    prefix: str
    page_for: PageFor


@dataclass(slots=True)
class Host:
    name: str
    pages: dict[str, Page] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)
    rules: Rules = OPEN

    def add(self, pages: Iterable[Page]) -> None:
        """Take pages in; two with one target would hide each other, so that is an error."""
        for page in pages:
            if page.target in self.pages:
                raise ValueError(f"{self.name} has two pages at {page.target}")
            self.pages[page.target] = page

    def find(self, target: str) -> Page | None:
        """Return the page at a target; behaviours that read their query are found by path."""
        page = self.pages.get(target)
        if page is not None:
            return page
        path = target.partition("?")[0]
        found = self.pages.get(path)
        if found is not None and (found.respond or found.perform):
            return found
        for family in self.families:
            if path.startswith(family.prefix) and (made := family.page_for(target)) is not None:
                return made
        return None
