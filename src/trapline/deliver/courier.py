"""The courier: takes receivers that have something due and tells each of them, in order.

A receiver is leased by one process at a time and its deliveries go out one after the other, so
their order is kept. A slow receiver takes up only its own few places: the others never wait for it.
"""

import asyncio
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID, uuid4

import asyncpg

from trapline.db.connection import LOST, Connection
from trapline.db.pool import Database
from trapline.deliver.patience import Patience, State
from trapline.deliver.sql import webhooks as queries
from trapline.deliver.sql.webhooks import LeaseEndpointsRow, NextDeliveriesRow
from trapline.errors import DatabaseUnavailable, NotFound
from trapline.logs import get_logger

log = get_logger(__name__)

SIGNATURE: Final = "X-Firecrawl-Signature"
_POLL: Final = 1.0
_LEASE: Final = timedelta(seconds=45)
_BATCH: Final = 50
_AT_ONCE: Final = 256
_AT_ONE_RECEIVER: Final = 8
_OURS: Final = frozenset({"content-length", "transfer-encoding", "host", "connection"})


@dataclass(frozen=True, slots=True)
class Posted:
    """How a POST ended: a status, or a reason. A refusal is not worth another try."""

    status: int | None = None
    error: str | None = None
    refused: bool = False

    @property
    def received(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 (HTTP)


class Post(Protocol):
    """Sends a body; checks the address, follows no redirect, ends within seconds."""

    async def __call__(self, url: str, headers: dict[str, str], body: bytes) -> Posted: ...


Render = Callable[[Connection, LeaseEndpointsRow, NextDeliveriesRow], Awaitable[bytes]]
"""Makes the body of a delivery; NotFound when what it tells of is no longer there."""


@dataclass(slots=True)
class Courier:
    """Delivers for all organisations, until it is cancelled."""

    database: Database
    post: Post
    render: Render
    secret: bytes | None = None
    patience: Patience = field(default_factory=Patience)
    _lease: UUID = field(default_factory=uuid4)
    _busy: Counter[str] = field(default_factory=Counter)
    _rounds: set[asyncio.Task[None]] = field(default_factory=set)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Look at once: something is due."""
        self._news.set()

    async def run(self) -> None:
        """Deliver for ever."""
        try:
            while True:
                self._news.clear()
                try:
                    took = await self._take()
                except (*LOST, DatabaseUnavailable) as error:
                    log.warning("webhooks wait for PostgreSQL", error=str(error))
                    took = 0
                if not took:
                    await self._pause()
        finally:
            for task in self._rounds:
                task.cancel()
            await asyncio.gather(*self._rounds, return_exceptions=True)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_POLL):
                await self._news.wait()
        except TimeoutError:
            return

    async def _take(self) -> int:
        """Lease receivers that have something due, and begin a round at each."""
        room = _AT_ONCE - len(self._rounds)
        if room <= 0:
            return 0
        async with self.database.system_tx() as conn:
            endpoints = await queries.lease_endpoints(
                conn,
                lease=self._lease,
                lease_time=_LEASE,
                receivers=list(self._busy),
                in_hand=list(self._busy.values()),
                most_each=_AT_ONE_RECEIVER,
                most=min(room, _BATCH),
            )
        for endpoint in endpoints:
            self._busy[endpoint.receiver] += 1
            task = asyncio.create_task(self._round(endpoint), name=f"webhooks {endpoint.id}")
            self._rounds.add(task)
            task.add_done_callback(self._rounds.discard)
        return len(endpoints)

    async def _round(self, endpoint: LeaseEndpointsRow) -> None:
        """Send what is due at one receiver, until nothing is or it does not answer."""
        try:
            while await self._some(endpoint):
                pass
            async with self.database.system_tx() as conn:
                if await self._hold(conn, endpoint):
                    await queries.release_endpoint(conn, id=endpoint.id)
        except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
            # The lease runs out, and whoever takes it next goes on from what is written.
            log.warning("a receiver is left for later", url=endpoint.url, error=str(error))
        finally:
            self._busy[endpoint.receiver] -= 1
            if not self._busy[endpoint.receiver]:
                del self._busy[endpoint.receiver]
            self.wake()

    async def _some(self, endpoint: LeaseEndpointsRow) -> bool:
        """Send the next few; return whether there may be more to send now."""
        async with self.database.system_tx() as conn:
            due = await queries.next_deliveries(conn, endpoint_id=endpoint.id, most=_BATCH)
        for delivery in due:
            if delivery.due_at > datetime.now(UTC):
                return False
            state = await self._deliver(endpoint, delivery)
            if state is None or (delivery.state == "pending" and state == "pending"):
                # Lost to another process, or to be tried again later: none may overtake it.
                return False
        return bool(due)

    async def _deliver(
        self, endpoint: LeaseEndpointsRow, delivery: NextDeliveriesRow
    ) -> State | None:
        attempted_at, clock = datetime.now(UTC), time.perf_counter()
        try:
            async with self.database.system_tx() as conn:
                if not await self._hold(conn, endpoint):
                    return None
                body = await self.render(conn, endpoint, delivery)
        except NotFound as error:
            posted = Posted(error=error.message, refused=True)
        else:
            posted = await self.post(endpoint.url, self._headers(endpoint, body), body)
        took_ms = round((time.perf_counter() - clock) * 1000)
        state, due_at = self._judge(delivery, posted, attempted_at)
        async with self.database.system_tx() as conn:
            if not await self._hold(conn, endpoint):
                return None
            await queries.note_attempt(
                conn,
                endpoint_id=endpoint.id,
                number=delivery.number,
                state=state,
                due_at=due_at,
                attempted_at=attempted_at,
                answer=posted.status,
                error=None if state == "delivered" else _reason(posted),
                took_ms=took_ms,
            )
        if state != "delivered":
            log.info("a webhook failed", url=endpoint.url, state=state, reason=_reason(posted))
        return state

    async def _hold(self, conn: Connection, endpoint: LeaseEndpointsRow) -> bool:
        held = await queries.hold_endpoint(
            conn, id=endpoint.id, lease=self._lease, lease_time=_LEASE
        )
        return held is not None

    def _judge(
        self, delivery: NextDeliveriesRow, posted: Posted, attempted_at: datetime
    ) -> tuple[State, datetime]:
        now = datetime.now(UTC)
        if posted.received:
            return "delivered", now
        if posted.refused:
            return "dead", now
        return self.patience.after_failure(
            attempts=delivery.attempts + 1,
            created_at=delivery.created_at,
            first_attempt_at=delivery.first_attempt_at or attempted_at,
            now=now,
        )

    def _headers(self, endpoint: LeaseEndpointsRow, body: bytes) -> dict[str, str]:
        wanted = {n: v for n, v in endpoint.headers.items() if n.lower() not in _OURS}
        headers = {"Content-Type": "application/json"} | wanted
        if self.secret is not None:
            headers[SIGNATURE] = signature(self.secret, body)
        return headers


def signature(secret: bytes, body: bytes) -> str:
    """Return what proves to a receiver who sent this body."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


def _reason(posted: Posted) -> str:
    return posted.error or f"The receiver answered {posted.status}."
