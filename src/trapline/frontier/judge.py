"""One job's judgement of the links on its pages: canonical form, scope, traps, robots, in that order.

Most links of a page stand on every page of its site, so the judge remembers what it judged lately
and answers those at once. The memory is bounded and may forget: that a URL is queued only once is
the database's promise, not this one's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trapline.errors import ExitCode, VisitFailed
from trapline.frontier.robots import Access
from trapline.frontier.scope import Scope, Verdict
from trapline.frontier.traps import TrapWatch
from trapline.frontier.url import Query, canonical, similar_key

REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Judgement:
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

    def judge(self, link: str, page: str, depth: int, now: datetime) -> Judgement | None:
        """Judge a link of a page; None means that it was judged before, no farther from the start."""
        try:
            url = canonical(link, page, self._query)
        except VisitFailed as failed:
            return Judgement(link, link, failed.code, failed.message)
        key = similar_key(url) if self._similar else url
        if self._depths.get(key, depth + 1) <= depth:
            return None
        self._remember(key, depth)
        return self._new(url, key, depth, now)

    def _new(self, url: str, key: str, depth: int, now: datetime) -> Judgement | None:
        verdict = self._scope.verdict(url, depth)
        if verdict is not Verdict.IN_SCOPE:
            return Judgement(url, key, ExitCode.OUT_OF_SCOPE, self._scope.explain(url, depth))
        trap = self.traps.judge(url, now)
        if trap is not None and trap.instead:
            return self.judge(trap.instead, url, depth, now)
        if trap is not None:
            return Judgement(url, key, ExitCode.TRAP, f"{trap.kind.sentence} ({trap.reason})")
        access = self._robots.get(url[: url.index("/", len("https://"))])
        if access is not None and not access.allows(url):
            return Judgement(url, key, ExitCode.ROBOTS_DISALLOWED)
        return Judgement(url, key)

    def _remember(self, key: str, depth: int) -> None:
        if len(self._depths) >= REMEMBERED:
            # Dictionaries keep their order: the oldest half goes, in one step.
            self._depths = dict(list(self._depths.items())[REMEMBERED // 2 :])
        self._depths[key] = depth
