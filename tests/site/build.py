"""Puts the page table together from every concern."""

from tests.site import (
    caching,
    charsets,
    files,
    hostile,
    hosts,
    redirects,
    robots,
    sitemaps,
    statuses,
)
from tests.site.atlas import MAIN, Atlas
from tests.site.host import Host
from tests.site.sections import (
    cards,
    duplicates,
    forum,
    journal,
    manual,
    notes,
    plain,
    services,
    shop,
)

_SECTIONS = (plain, journal, manual, forum, shop, cards, services, notes, duplicates)
_DEMO = (redirects, statuses, caching, charsets, files)


def build(port: int) -> Atlas:
    """Return all hosts with all their pages; absolute links lead to this port."""
    main = _main(port)
    atlas = Atlas([main, *hosts.others(port, main)])
    for host in robots.hosts(atlas.rules):
        atlas.hosts[host.name] = host
    for host in atlas.hosts.values():
        if robots.TARGET not in host.pages:
            host.add([robots.robots_page(atlas.rules)])
    return atlas


def _main(port: int) -> Host:
    main = Host(MAIN, families=hostile.families(), rules=robots.MAIN_RULES)
    for section in _SECTIONS:
        main.add(section.pages())
    for concern in _DEMO:
        main.add(concern.demo())
    main.add([plain.overview(main.pages.values())])
    main.add(sitemaps.main_host(main))
    main.add(hostile.pages(port))
    return main
