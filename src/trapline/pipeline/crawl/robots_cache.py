"""robots.txt cache: in memory, else in the database, else fetched from the origin."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from trapline.db.pool import Database
from trapline.errors import OUTCOMES, Category, ExitCode
from trapline.fetch import Fetcher
from trapline.frontier.robots import Access, Robots, RobotsPolicy, parse_robots, policy_for
from trapline.frontier.sql import robots as queries
from trapline.frontier.sql.robots import RobotsRow
from trapline.model import APPROVED, Approval, FetchRequest

_CACHED_ORIGINS: Final = 2_000
_CACHED_AGENTS: Final = 8
# A separate entry: a file from an unverified connection must not serve jobs that verify TLS.
_UNVERIFIED: Final = " unverified"


@dataclass(frozen=True, slots=True)
class OriginRobots:
    """The robots.txt of one origin, and when it expires."""

    policy: RobotsPolicy
    robots: Robots
    exit_code: ExitCode
    expires_at: datetime
    _accesses: dict[str, Access] = field(default_factory=dict, compare=False, repr=False)

    def access(self, user_agent: str) -> Access:
        """Return the rules for an agent; called before every request, so the last few are cached."""
        access = self._accesses.get(user_agent)
        if access is None:
            read = self.policy is RobotsPolicy.READ
            access = self.robots.access(user_agent) if read else Access()
            if len(self._accesses) >= _CACHED_AGENTS:
                self._accesses.clear()
            self._accesses[user_agent] = access
        return access


@dataclass(slots=True)
class RobotsCache:
    """The robots.txt files that this process used lately; concurrent fetches of one are merged."""

    database: Database
    fetcher: Fetcher
    _files: OrderedDict[str, OriginRobots] = field(default_factory=OrderedDict)
    _loading: dict[str, asyncio.Task[OriginRobots]] = field(default_factory=dict)

    async def get(self, origin: str, *, verify_tls: bool = True) -> OriginRobots:
        """Return the robots.txt of an origin; without `verify_tls`, also one from an unverified connection."""
        robots = await self._get(origin)
        if verify_tls or robots.exit_code is not ExitCode.TLS_FAILURE:
            return robots
        return await self._get(f"{origin}{_UNVERIFIED}")

    def is_cached(self, origin: str, *, verify_tls: bool = True) -> bool:
        """Whether the robots.txt of an origin is in memory."""
        robots = self._cached(origin)
        if robots is None or verify_tls or robots.exit_code is not ExitCode.TLS_FAILURE:
            return robots is not None
        return self._cached(f"{origin}{_UNVERIFIED}") is not None

    def _cached(self, origin: str) -> OriginRobots | None:
        robots = self._files.get(origin)
        return robots if robots is not None and robots.expires_at > datetime.now(UTC) else None

    async def _get(self, origin: str) -> OriginRobots:
        cached = self._cached(origin)
        if cached is not None:
            return cached
        loading = self._loading.get(origin)
        if loading is None:
            loading = self._loading[origin] = asyncio.create_task(self._load(origin))
            loading.add_done_callback(lambda _: self._loading.pop(origin, None))
        # A cancelled caller must not cancel the load for the others.
        robots = await asyncio.shield(loading)
        self._files[origin] = robots
        self._files.move_to_end(origin)
        if len(self._files) > _CACHED_ORIGINS:
            self._files.popitem(last=False)
        return robots

    async def _load(self, origin: str) -> OriginRobots:
        async with self.database.system_tx() as conn:
            row = await queries.fresh_robots(conn, origin=origin, now=datetime.now(UTC))
        return _parsed(row) if row is not None else await self._fetch(origin)

    async def _fetch(self, origin: str) -> OriginRobots:
        address = origin.removesuffix(_UNVERIFIED)
        fetched = await self.fetcher.fetch(
            FetchRequest(
                url=f"{address}/robots.txt", approve=_approve_all, verify_tls=address == origin
            )
        )
        now = datetime.now(UTC)
        policy = policy_for(fetched.status, redirects=len(fetched.redirects))
        # Our own refusal says nothing about the server, and a setting may lift it at any moment.
        ours = OUTCOMES[fetched.exit_code].category is Category.UNSAFE
        row = RobotsRow(
            origin=origin,
            fetched_at=now,
            expires_at=now if ours else now + policy.ask_again_after,
            status=fetched.status,
            exit_code=fetched.exit_code,
            body=fetched.body if policy is RobotsPolicy.READ else b"",
        )
        async with self.database.system_tx() as conn:
            await queries.keep_robots(
                conn,
                origin=row.origin,
                fetched_at=row.fetched_at,
                expires_at=row.expires_at,
                status=row.status,
                exit_code=row.exit_code,
                body=row.body,
            )
        return _parsed(row)


class CachedAccess(Mapping[str, Access]):
    """The cached robots rules for one agent, by origin: links are filtered with it."""

    def __init__(self, cache: RobotsCache, user_agent: str) -> None:
        self._cache = cache
        self._agent = user_agent
        self._accesses: dict[str, tuple[OriginRobots, Access]] = {}

    def __getitem__(self, origin: str) -> Access:
        robots = self._cache._files[origin]  # noqa: SLF001 (the same module)
        entry = self._accesses.get(origin)
        if entry is None or entry[0] is not robots:
            entry = self._accesses[origin] = (robots, robots.access(self._agent))
        return entry[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cache._files)  # noqa: SLF001 (the same module)

    def __len__(self) -> int:
        return len(self._cache._files)  # noqa: SLF001 (the same module)


def check_robots(robots: OriginRobots, access: Access, url: str) -> Approval:
    """Decide whether robots.txt lets a URL be requested."""
    if robots.policy is RobotsPolicy.DISALLOW_ALL:
        # Where no response came at all, report that: the page would fail in the same way.
        unanswered = OUTCOMES[robots.exit_code].category is not Category.CONTENTFUL
        answered = robots.exit_code in (ExitCode.SERVER_ERROR, ExitCode.SERVICE_UNAVAILABLE)
        code = robots.exit_code if unanswered and not answered else ExitCode.ROBOTS_UNREACHABLE
        return Approval(code, robots_approved=False)
    if not access.allows(url):
        return Approval(ExitCode.ROBOTS_DISALLOWED, robots_approved=False)
    return APPROVED


async def _approve_all(url: str) -> Approval:
    del url
    return APPROVED


def _parsed(row: RobotsRow) -> OriginRobots:
    code = ExitCode(row.exit_code)
    return OriginRobots(policy_for(row.status), parse_robots(row.body), code, row.expires_at)
