"""One job's judgement of the links on its pages: canonical form, scope, traps, robots, in that order.

Most links of a page stand on every page of its site, so the judge remembers what it judged lately
and answers those at once. The memory is bounded and may forget: that a URL is queued only once is
the database's promise, not this one's.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from trapline.errors import ExitCode, VisitFailed
from trapline.frontier.robots import Access
from trapline.frontier.scope import Scope, Verdict
from trapline.frontier.traps import TrapWatch
from trapline.frontier.url import Query, canonical, similar_key
from trapline.model import Link

REMEMBERED = 20_000
_ABSOLUTE = ("http://", "https://")


class Judgement(Struct, frozen=True):
    """What becomes of a link: `url` is queued if there is no `refusal`, else reported with why."""

    url: str
    key: str
    refusal: ExitCode | None = None
    reason: str | None = None


class LinkJudge:
    """`similar` makes URLs that almost surely show one page count as one; robots are by origin."""

    def __init__(
        self,
        scope: Scope,
        robots: Mapping[str, Access],
        *,
        query: Query = Query.KEEP,
        similar: bool = True,
    ) -> None:
        self.traps = TrapWatch()
        self._scope = scope
        self._robots = robots
        self._query = query
        self._similar = similar
        self._depths: dict[str, int] = {}
        self._links: dict[str, int] = {}

    def fresh(self, links: Iterable[Link], depth: int) -> list[Link]:
        """Return the links of a page that need to be judged.

        Most are known by their spelling, for they stand on every page, and most of the others leave the
        site, which nobody need be told.
        """
        known, farther = self._links, depth + 1
        new = [link for link in links if known.get(link.url, farther) > depth]
        return [link for link in new if not self._leaves(link.url)]

    def _leaves(self, link: str) -> bool:
        found = self._scope.leaves(link)
        if found:
            self._links = _remembering(self._links, link, 0)
        return found

    def judge(self, link: str, page: str, depth: int, now: datetime) -> Judgement | None:
        """Judge a link of a page; None means that it was judged before, no farther from the start."""
        # A link that is absolute means the same on every page: most are known without any parsing.
        if self._links.get(link, depth + 1) <= depth:
            return None
        try:
            url = canonical(link, page, self._query)
        except VisitFailed as failed:
            return Judgement(link, link, failed.code, failed.message)
        if link.startswith(_ABSOLUTE):
            self._links = _remembering(self._links, link, depth)
        key = similar_key(url) if self._similar else url
        if self._depths.get(key, depth + 1) <= depth:
            return None
        self._depths = _remembering(self._depths, key, depth)
        return self._new(url, key, depth, now)

    def forget(self, links: Iterable[str], page: str) -> None:
        """Judge these again, because what came of it the first time was lost with its task."""
        for link in links:
            self._links.pop(link, None)
            with suppress(VisitFailed):
                url = canonical(link, page, self._query)
                self._depths.pop(similar_key(url) if self._similar else url, None)

    def _new(self, url: str, key: str, depth: int, now: datetime) -> Judgement | None:
        verdict = self._scope.verdict(url, depth)
        if verdict is not Verdict.IN_SCOPE:
            return Judgement(url, key, ExitCode.OUT_OF_SCOPE, self._scope.reason(verdict, url))
        trap = self.traps.judge(url, now)
        if trap is not None and trap.instead:
            return self.judge(trap.instead, url, depth, now)
        if trap is not None:
            return Judgement(url, key, ExitCode.TRAP, f"{trap.kind.sentence} ({trap.reason})")
        access = self._robots.get(url[: url.index("/", len("https://"))])
        if access is not None and not access.allows(url):
            return Judgement(url, key, ExitCode.ROBOTS_DISALLOWED)
        return Judgement(url, key)


def _remembering(depths: dict[str, int], key: str, depth: int) -> dict[str, int]:
    if len(depths) >= REMEMBERED:
        # Dictionaries keep their order: the oldest half goes, in one step.
        depths = dict(list(depths.items())[REMEMBERED // 2 :])
    depths[key] = depth
    return depths
