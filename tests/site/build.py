"""Puts the page table together from every concern."""

from tests.site.atlas import MAIN, Atlas
from tests.site.host import Host
from tests.site.sections import journal


def build(port: int) -> Atlas:
    """Return all hosts with all their pages; absolute links lead to this port."""
    main = Host(MAIN)
    main.add(journal.pages())
    return Atlas([main])
