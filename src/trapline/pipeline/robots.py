"""robots.txt of every origin: in memory, else in the database, else asked of the server."""

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
from trapline.model import APPROVED, FetchRequest, Verdict

_REMEMBERED: Final = 2_000
_AGENTS: Final = 8
# Kept apart: what came over a connection that was not verified says nothing to those who do.
_UNVERIFIED: Final = " unverified"


@dataclass(frozen=True, slots=True)
class OriginRobots:
    """What the robots.txt of one origin says, and until when."""

    policy: RobotsPolicy
    robots: Robots
    exit_code: ExitCode
    expires_at: datetime
    _accesses: dict[str, Access] = field(default_factory=dict, compare=False, repr=False)

    def access(self, user_agent: str) -> Access:
        """Return what an agent may do; asked before every request, so the last few are remembered."""
        found = self._accesses.get(user_agent)
        if found is None:
            read = self.policy is RobotsPolicy.READ
            found = self.robots.access(user_agent) if read else Access()
            if len(self._accesses) >= _AGENTS:
                self._accesses.clear()
            self._accesses[user_agent] = found
        return found


@dataclass(slots=True)
class RobotsFiles:
    """Every robots.txt that this process needed lately; each is asked for once at a time."""

    database: Database
    fetcher: Fetcher
    _files: OrderedDict[str, OriginRobots] = field(default_factory=OrderedDict)
    _asking: dict[str, asyncio.Task[OriginRobots]] = field(default_factory=dict)

    async def of(self, origin: str, *, verify_tls: bool = True) -> OriginRobots:
        """Return the robots.txt of an origin; who does not verify gets one that was not verified."""
        found = await self._of(origin)
        if verify_tls or found.exit_code is not ExitCode.TLS_FAILURE:
            return found
        return await self._of(f"{origin}{_UNVERIFIED}")

    def is_known(self, origin: str, *, verify_tls: bool = True) -> bool:
        """Whether nobody needs to be asked for the robots.txt of an origin."""
        found = self._known(origin)
        if found is None or verify_tls or found.exit_code is not ExitCode.TLS_FAILURE:
            return found is not None
        return self._known(f"{origin}{_UNVERIFIED}") is not None

    def _known(self, origin: str) -> OriginRobots | None:
        known = self._files.get(origin)
        return known if known is not None and known.expires_at > datetime.now(UTC) else None

    async def _of(self, origin: str) -> OriginRobots:
        known = self._known(origin)
        if known is not None:
            return known
        asking = self._asking.get(origin)
        if asking is None:
            asking = self._asking[origin] = asyncio.create_task(self._find(origin))
            asking.add_done_callback(lambda _: self._asking.pop(origin, None))
        # One caller that is cancelled must not take the answer from the others.
        found = await asyncio.shield(asking)
        self._files[origin] = found
        self._files.move_to_end(origin)
        if len(self._files) > _REMEMBERED:
            self._files.popitem(last=False)
        return found

    async def _find(self, origin: str) -> OriginRobots:
        async with self.database.system_tx() as conn:
            row = await queries.fresh_robots(conn, origin=origin, now=datetime.now(UTC))
        return _parsed(row) if row is not None else await self._ask(origin)

    async def _ask(self, origin: str) -> OriginRobots:
        place = origin.removesuffix(_UNVERIFIED)
        fetched = await self.fetcher.fetch(
            FetchRequest(url=f"{place}/robots.txt", approve=_always, verify_tls=place == origin)
        )
        now = datetime.now(UTC)
        policy = policy_for(fetched.status, redirects=len(fetched.redirects))
        # What we refused ourselves says nothing of the server; a setting may open it any moment.
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


class KnownAccess(Mapping[str, Access]):
    """What is known of origins without asking, as one agent: links are judged by it."""

    def __init__(self, files: RobotsFiles, user_agent: str) -> None:
        self._files = files
        self._agent = user_agent
        self._accesses: dict[str, tuple[OriginRobots, Access]] = {}

    def __getitem__(self, origin: str) -> Access:
        found = self._files._files[origin]  # noqa: SLF001 (the same module)
        held = self._accesses.get(origin)
        if held is None or held[0] is not found:
            held = self._accesses[origin] = (found, found.access(self._agent))
        return held[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files._files)  # noqa: SLF001 (the same module)

    def __len__(self) -> int:
        return len(self._files._files)  # noqa: SLF001 (the same module)


def refusal(found: OriginRobots, access: Access, url: str) -> Verdict:
    """Judge a request by the robots.txt of its origin."""
    if found.policy is RobotsPolicy.DISALLOW_ALL:
        # Where no answer came at all, the page would fail in the same way: say that.
        unanswered = OUTCOMES[found.exit_code].category is not Category.CONTENTFUL
        answered = found.exit_code in (ExitCode.SERVER_ERROR, ExitCode.SERVICE_UNAVAILABLE)
        code = found.exit_code if unanswered and not answered else ExitCode.ROBOTS_UNREACHABLE
        return Verdict(code, robots_approved=False)
    if not access.allows(url):
        return Verdict(ExitCode.ROBOTS_DISALLOWED, robots_approved=False)
    return APPROVED


async def _always(url: str) -> Verdict:
    del url
    return APPROVED


def _parsed(row: RobotsRow) -> OriginRobots:
    code = ExitCode(row.exit_code)
    return OriginRobots(policy_for(row.status), parse_robots(row.body), code, row.expires_at)
