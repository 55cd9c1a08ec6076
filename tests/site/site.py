"""The handle that tests hold: where the site is, what it saw, what is true, how to break it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.site.atlas import MAIN
from tests.site.certificates import Authority
from tests.site.connection import Find
from tests.site.faults import Fault
from tests.site.log import Log
from tests.site.message import Headers
from tests.site.page import Page
from tests.site.rules import Rules
from tests.site.server import Server
from tests.site.truth import Truth, reachable

LOOPBACK = "127.0.0.0/8"


class Site:
    """One running site. Everything that a test changes is undone by `reset`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._tls: dict[str, int] = {}
        self._authority: Authority | None = None
        self.address = server.address
        self.port = server.port

    # Where it is

    @property
    def url(self) -> str:
        """The address that needs no name: the main host by its number."""
        return f"http://{self.address}:{self.port}/"

    def at(self, target: str, host: str | None = None) -> str:
        """Return the absolute URL of a target, on the numbered main host or on a named one."""
        return f"http://{host or self.address}:{self.port}{target}"

    def hosts(self) -> list[str]:
        """Return the names that are not patterns."""
        return sorted(name for name in self._server.atlas.hosts if not name.startswith("*."))

    def resolve(self, *further: str) -> str:
        """Return TRAPLINE_RESOLVE's value: every name at every port leads here."""
        ports = [self.port, *self._tls.values()]
        names = [*self.hosts(), *further]
        return ",".join(f"{name}:{port}:{self.address}" for name in names for port in ports)

    def env(self, *further: str) -> dict[str, str]:
        """Return the environment in which Trapline can reach all of it."""
        return {"TRAPLINE_RESOLVE": self.resolve(*further), "TRAPLINE_ALLOW_NETS": LOOPBACK}

    def tls(self, kind: str = "good", host: str = MAIN, target: str = "/") -> str:
        """Open an HTTPS port with that kind of certificate, and return a URL on it."""
        if kind not in self._tls:
            self._tls[kind] = self._server.listen(context=self.authority.context(kind))
        return f"https://{host}:{self._tls[kind]}{target}"

    def serve_as(self, port: int) -> None:
        """Also serve the main host's pages over TLS on a port, under every name."""
        find: Find = lambda request: self._server.atlas.find(MAIN, request.target)  # noqa: E731
        self._server.listen(port, context=self.authority.context("good"), find=find)

    @property
    def authority(self) -> Authority:
        """Who signed the certificates. Nobody trusts it, except a client that is told to."""
        if self._authority is None:
            self._authority = Authority()
        return self._authority

    def serve_control(self, find: Find, port: int = 0) -> str:
        """Open the port of the controls, which the site itself never mentions."""
        return f"http://{self.address}:{self._server.listen(port, find=find)}/"

    # What it saw, and what is true

    @property
    def log(self) -> Log:
        return self._server.log

    @property
    def errors(self) -> list[BaseException]:
        """What went wrong inside the site itself; always empty, or the site has a bug."""
        return self._server.errors

    def page(self, url: str) -> Page:
        """Return the row of the page table for an absolute URL or a target of the main host."""
        return self._server.atlas.at(url if "://" in url else self.at(url))

    def pages(self, host: str = MAIN) -> Iterator[Page]:
        known = self._server.atlas.host(host)
        return iter(known.pages.values() if known else ())

    def allows(self, agent: str, target: str, host: str = MAIN) -> bool:
        """Tell whether the rules let an agent fetch a target."""
        return self._server.atlas.rules(host).allows(agent, target)

    def reachable(self, seed: str | None = None, **options: Any) -> Truth:
        """Return what a complete crawl from a seed must do; options as `truth.reachable`."""
        return reachable(self._server.atlas, seed or self.url, **options)

    # How to break it

    def fault(self, pattern: str = "*", **fault: Any) -> Fault:
        """Lay a fault over all targets that match a frame pattern; the newest is asked first."""
        laid = Fault(pattern=pattern, **fault)
        self._server.state.faults = (laid, *self._server.state.faults)
        return laid

    def slow(self, pattern: str = "*", first_byte: float = 0.0, per_chunk: float = 0.0) -> Fault:
        return self.fault(pattern, first_byte=first_byte, per_chunk=per_chunk)

    def fail(
        self, pattern: str = "*", status: int = 500, times: int | None = None, headers: Headers = ()
    ) -> Fault:
        return self.fault(pattern, status=status, times=times, headers=headers)

    def drop(self, pattern: str = "*", how: str = "reset", times: int | None = None) -> Fault:
        return self.fault(pattern, drop=how, times=times)

    def mend(self) -> None:
        """Take all faults away; changes to pages stay."""
        self._server.state.faults = ()

    def change(self, target: str, host: str | None = None, **fields: Any) -> Page:
        """Replace fields of a page (body, status, headers, redirect, …); a new target is added."""
        atlas, name = self._server.atlas, host or MAIN
        present = atlas.find(name, target)
        if present.status == 404:
            fields = {"status": 200} | fields
        if "body" in fields:
            fields = {"respond": None, "perform": None} | fields
        page = replace(present, **fields)
        atlas.changes[(name, target)] = page
        return page

    def edit(self, target: str, old: str, new: str, host: str | None = None) -> Page:
        """Replace words in a page's body, as its author would."""
        body = self._server.atlas.find(host or MAIN, target).body
        if old.encode() not in body:
            raise ValueError(f"{target} does not say {old!r}")
        return self.change(target, host, body=body.replace(old.encode(), new.encode()))

    def remove(self, target: str, status: int = 404, host: str | None = None) -> None:
        self.change(target, host, body=b"Gone.", status=status, links=())

    def set_rules(self, rules: Rules, host: str = MAIN) -> None:
        """Change what robots may do: robots.txt and the truth both follow."""
        self._server.atlas.changed_rules[host] = rules

    def down(self) -> None:
        """Refuse all connections, until `up`."""
        self._server.unlisten(self.port)

    def up(self) -> None:
        self._server.listen(self.port)

    def reset(self) -> None:
        if not self._server.listens(self.port):
            self.up()
        self._server.reset()

    def close(self) -> None:
        """Stop the server and remove what was written to disk."""
        self._server.stop()
        if self._authority is not None:
            self._authority.close()


@contextmanager
def running(port: int = 0, address: str = "127.0.0.1") -> Iterator[Site]:
    """Start a site of one's own and stop it at the end."""
    server = Server(address, port)
    server.start()
    site = Site(server)
    try:
        yield site
    finally:
        site.close()
