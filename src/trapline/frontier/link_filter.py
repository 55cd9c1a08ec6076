"""Link filter of one job: canonical form, scope, spider traps and robots.txt, in that order.

Most links of a page are on every page of its site, so the filter caches its latest decisions. The
cache is bounded: the database guarantees that a URL is queued only once, not this filter.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from trapline.errors import ExitCode, VisitFailed
from trapline.frontier.canonical_url import Query, canonical, similar_key
from trapline.frontier.priority import depth_of_rank
from trapline.frontier.robots import Access
from trapline.frontier.scope import Scope, ScopeDecision
from trapline.frontier.spider_traps import TrapDetector
from trapline.model import Link

CACHE_SIZE = 20_000
_ABSOLUTE = ("http://", "https://")
# Better than any rank: such a link gets no second decision.
_REFUSED = -1


class LinkDecision(Struct, frozen=True):
    """The decision on a link: `url` is queued if there is no `refusal`, else logged with the reason."""

    url: str
    key: str
    refusal: ExitCode | None = None
    reason: str | None = None
    seen: bool = False
    """Whether it was queued before, with a worse priority."""


class LinkFilter:
    """`similar` counts URLs that almost surely show one page as one; `robots` is by origin."""

    def __init__(
        self,
        scope: Scope,
        robots: Mapping[str, Access],
        *,
        query: Query = Query.KEEP,
        similar: bool = True,
    ) -> None:
        self.traps = TrapDetector()
        self._scope = scope
        self._robots = robots
        self._query = query
        self._similar = similar
        # The best rank of each link: see `frontier.priority.link_rank`.
        self._ranks: dict[str, int] = {}
        self._links: dict[str, int] = {}

    def unseen(self, links: Iterable[Link], rank: int) -> list[Link]:
        """Return the links of a page that need a decision; `rank` is the best that one can have.

        Most links are in the cache by their spelling, because every page has them. Links to other sites
        are left out: they are not logged.
        """
        known, worse = self._links, rank + 1
        new = [link for link in links if known.get(link.url, worse) > rank]
        return [link for link in new if not self._is_external(link.url)]

    def _is_external(self, link: str) -> bool:
        external = self._scope.is_external(link)
        if external:
            self._links = _with_entry(self._links, link, 0)
        return external

    def decide(self, link: str, page: str, rank: int, now: datetime) -> LinkDecision | None:
        """Decide on a link of a page; None if it was decided before with this rank or a better one."""
        # An absolute link means the same on every page: most need no parsing.
        if self._links.get(link, rank + 1) <= rank:
            return None
        try:
            url = canonical(link, page, self._query)
        except VisitFailed as failed:
            return LinkDecision(link, link, failed.code, failed.message)
        if link.startswith(_ABSOLUTE):
            self._links = _with_entry(self._links, link, rank)
        key = similar_key(url) if self._similar else url
        before = self._ranks.get(key)
        if before is not None and before <= rank:
            return None
        self._ranks = _with_entry(self._ranks, key, rank)
        if before is not None and depth_of_rank(before) <= depth_of_rank(rank):
            return self._again(url, key, depth_of_rank(before))
        return self._new(url, key, rank, now)

    def _again(self, url: str, key: str, depth: int) -> LinkDecision | None:
        """Decide on a link that had a worse priority: it is queued already, or was out of scope."""
        in_scope = self._scope.decide(url, depth) is ScopeDecision.IN_SCOPE
        return LinkDecision(url, key, seen=True) if in_scope else None

    def forget(self, links: Iterable[str], page: str) -> None:
        """Drop links from the cache: the task that would have queued them was lost."""
        for link in links:
            self._links.pop(link, None)
            with suppress(VisitFailed):
                url = canonical(link, page, self._query)
                self._ranks.pop(similar_key(url) if self._similar else url, None)

    def _new(self, url: str, key: str, rank: int, now: datetime) -> LinkDecision | None:
        decision = self._scope.decide(url, depth_of_rank(rank))
        if decision is not ScopeDecision.IN_SCOPE:
            return LinkDecision(url, key, ExitCode.OUT_OF_SCOPE, self._scope.reason(decision, url))
        trap = self.traps.detect(url, now)
        if trap is not None and trap.instead:
            return self.decide(trap.instead, url, rank, now)
        if trap is not None:
            self._ranks[key] = _REFUSED
            return LinkDecision(url, key, ExitCode.TRAP, f"{trap.kind.sentence} ({trap.reason})")
        access = self._robots.get(url[: url.index("/", len("https://"))])
        if access is not None and not access.allows(url):
            self._ranks[key] = _REFUSED
            return LinkDecision(url, key, ExitCode.ROBOTS_DISALLOWED)
        return LinkDecision(url, key)


def _with_entry(ranks: dict[str, int], key: str, rank: int) -> dict[str, int]:
    if len(ranks) >= CACHE_SIZE:
        # Dictionaries keep their order: the oldest half goes, in one step.
        ranks = dict(list(ranks.items())[CACHE_SIZE // 2 :])
    ranks[key] = rank
    return ranks
