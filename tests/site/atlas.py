"""The page table of all hosts: what the server answers from, and what the truth is read from."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from tests.site.host import Host
from tests.site.page import Page
from tests.site.rules import OPEN, Rules

MAIN = "trapline.test"
ALIASES = {"127.0.0.1": MAIN, "localhost": MAIN, "[::1]": MAIN, "": MAIN}

_MISSING = b"""<!doctype html>
<html lang="en"><head><title>Page not found</title></head>
<body><h1>Not found</h1><p>There is no page at this address.</p></body></html>"""


class Atlas:
    """Hosts by name; `*.suffix` stands for every name that ends so."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.missing = _MISSING
        self.changes: dict[tuple[str, str], Page] = {}
        """Pages that tests put in place of those of the table, by host and target."""
        self.changed_rules: dict[str, Rules] = {}

    def host(self, name: str) -> Host | None:
        name = ALIASES.get(name, name)
        if name in self.hosts:
            return self.hosts[name]
        return self.hosts.get("*." + name.partition(".")[2])

    def find(self, host: str, target: str) -> Page:
        """Return the page that answers; a target that nobody wrote is a 404, as on any site."""
        name = ALIASES.get(host, host)
        if self.changes and (changed := self.changes.get((name, target))) is not None:
            return changed
        known = self.host(name)
        page = known.find(target) if known is not None else None
        return page or Page(target=target, body=self.missing, status=404)

    def rules(self, host: str) -> Rules:
        """Return what robots may do on a host, now."""
        name = ALIASES.get(host, host)
        known = self.host(name)
        return self.changed_rules.get(name) or (known.rules if known else OPEN)

    def restore(self) -> None:
        self.changes.clear()
        self.changed_rules.clear()

    def at(self, url: str) -> Page:
        """Return the page at an absolute URL, whatever its port."""
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return self.find(parts.hostname or "", target)
