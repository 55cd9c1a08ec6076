"""What the server saw: every request with its times, so that tests assert facts, not intentions."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise

from tests.site.message import Request

SUPPORTING = ("/robots.txt", "/sitemap", "/feeds/", "/assets/", "/favicon.ico")
"""What crawlers and browsers fetch beside pages, by how it begins."""


@dataclass(slots=True)
class Entry:
    """One request. Times are `time.monotonic()`, so that gaps are exact; `at` is wall-clock."""

    host: str
    method: str
    target: str
    headers: dict[str, str]
    scheme: str
    proxied: bool
    connection: int
    at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    finished: float | None = None
    status: int = 0
    sent: int = 0
    aborted: bool = False
    """The client went away, or the server cut it off, before the answer was complete."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.headers.get('host', self.host)}{self.target}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__} | {"url": self.url}


class Log:
    """Entries in order of arrival. Appended by the server's thread, read by any."""

    def __init__(self, limit: int = 200_000) -> None:
        self._entries: list[Entry] = []
        self._limit = limit
        self.total = 0

    def open(self, request: Request, connection: int) -> Entry:
        entry = Entry(
            host=request.host,
            method=request.method,
            target=request.target,
            headers=request.headers,
            scheme=request.scheme,
            proxied=request.proxied,
            connection=connection,
        )
        self.total += 1
        # A crawl of a million pages must not fill the memory: beyond the limit only `total` grows.
        if len(self._entries) < self._limit:
            self._entries.append(entry)
        return entry

    def clear(self) -> None:
        self._entries = []
        self.total = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[:])

    def __len__(self) -> int:
        return len(self._entries)

    def of(
        self, target: str = "*", *, host: str | None = None, method: str | None = None
    ) -> list[Entry]:
        """Return the entries whose target matches a frame pattern."""
        return [
            entry
            for entry in self
            if fnmatchcase(entry.target, target)
            and (host is None or entry.host == host)
            and (method is None or entry.method == method)
        ]

    def pages(self, host: str | None = None) -> Counter[str]:
        """Return how often each URL was fetched that is not robots.txt, a sitemap or an asset."""
        return Counter(
            entry.url
            for entry in self
            if not entry.target.startswith(SUPPORTING) and (host is None or entry.host == host)
        )

    def counts(self, host: str | None = None) -> Counter[str]:
        """Return how often each URL was asked for."""
        return Counter(entry.url for entry in self if host is None or entry.host == host)

    def statuses(self) -> Counter[int]:
        return Counter(entry.status for entry in self)

    def gaps(self, host: str) -> list[float]:
        """Return the seconds between one request to a host and the next."""
        starts = [entry.started for entry in self if entry.host == host]
        return [later - earlier for earlier, later in pairwise(starts)]

    def most_in_flight(self, host: str | None = None) -> int:
        """Return the greatest number of requests that were being answered at once."""
        now = time.monotonic()
        moments = [
            moment
            for entry in self
            if host is None or entry.host == host
            for moment in ((entry.started, 1), (entry.finished or now, -1))
        ]
        in_flight = most = 0
        for _, change in sorted(moments):
            in_flight += change
            most = max(most, in_flight)
        return most

    def wait(self, enough: Callable[["Log"], bool], timeout: float = 60.0) -> None:
        """Block until the log satisfies a condition; for tests whose client is another process."""
        deadline = time.monotonic() + timeout
        while not enough(self):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the site saw {len(self)} requests, and that is not enough")
            time.sleep(0.01)
