"""The webhook sender: leases endpoints with due deliveries and sends them, in order.

One process at a time leases an endpoint and sends its deliveries one after the other, which keeps their
order. A slow receiver occupies only its own few slots, so the others never wait for it.
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
from trapline.deliver.retry_policy import DeliveryRetryPolicy, DeliveryState
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
_FORBIDDEN_HEADERS: Final = frozenset({"content-length", "transfer-encoding", "host", "connection"})


@dataclass(frozen=True, slots=True)
class PostResult:
    """The result of a POST: a status or an error. A refused request is not retried."""

    status: int | None = None
    error: str | None = None
    refused: bool = False

    @property
    def received(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 (HTTP)


class Post(Protocol):
    """Sends a body; checks the address, follows no redirect, times out within seconds."""

    async def __call__(self, url: str, headers: dict[str, str], body: bytes) -> PostResult: ...


Render = Callable[[Connection, LeaseEndpointsRow, NextDeliveriesRow], Awaitable[bytes]]
"""Renders the body of a delivery; NotFound if its subject no longer exists."""


@dataclass(slots=True)
class WebhookSender:
    """Sends the webhooks of all organisations until it is cancelled."""

    database: Database
    post: Post
    render: Render
    secret: bytes | None = None
    retry_policy: DeliveryRetryPolicy = field(default_factory=DeliveryRetryPolicy)
    _lease: UUID = field(default_factory=uuid4)
    _busy: Counter[str] = field(default_factory=Counter)
    _senders: set[asyncio.Task[None]] = field(default_factory=set)
    _due: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Look for due deliveries now."""
        self._due.set()

    async def run(self) -> None:
        """Send due deliveries for ever."""
        try:
            while True:
                self._due.clear()
                try:
                    leased = await self._lease_due()
                except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                    log.warning("webhooks wait for PostgreSQL", error=str(error))
                    leased = 0
                if not leased:
                    await self._pause()
        finally:
            for task in self._senders:
                task.cancel()
            await asyncio.gather(*self._senders, return_exceptions=True)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_POLL):
                await self._due.wait()
        except TimeoutError:
            return

    async def _lease_due(self) -> int:
        """Lease endpoints with due deliveries, and start a task for each."""
        free = _AT_ONCE - len(self._senders)
        if free <= 0:
            return 0
        async with self.database.system_tx() as conn:
            endpoints = await queries.lease_endpoints(
                conn,
                lease=self._lease,
                lease_time=_LEASE,
                receivers=list(self._busy),
                in_hand=list(self._busy.values()),
                most_each=_AT_ONE_RECEIVER,
                most=min(free, _BATCH),
            )
        for endpoint in endpoints:
            self._busy[endpoint.receiver] += 1
            task = asyncio.create_task(self._send_all(endpoint), name=f"webhooks {endpoint.id}")
            self._senders.add(task)
            task.add_done_callback(self._senders.discard)
        return len(endpoints)

    async def _send_all(self, endpoint: LeaseEndpointsRow) -> None:
        """Send the due deliveries of one endpoint, until none is left or one fails."""
        try:
            while await self._send_batch(endpoint):
                pass
            async with self.database.system_tx() as conn:
                if await self._renew_lease(conn, endpoint):
                    await queries.release_endpoint(conn, id=endpoint.id)
        except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
            # The lease expires, and the next process goes on from the written state.
            log.warning("a webhook endpoint is left for later", url=endpoint.url, error=str(error))
        finally:
            self._busy[endpoint.receiver] -= 1
            if not self._busy[endpoint.receiver]:
                del self._busy[endpoint.receiver]
            self.wake()

    async def _send_batch(self, endpoint: LeaseEndpointsRow) -> bool:
        """Send the next deliveries; return whether more may be due now."""
        async with self.database.system_tx() as conn:
            due = await queries.next_deliveries(conn, endpoint_id=endpoint.id, most=_BATCH)
        for delivery in due:
            if delivery.due_at > datetime.now(UTC):
                return False
            state = await self._deliver(endpoint, delivery)
            if state is None or (delivery.state == "pending" and state == "pending"):
                # The lease is lost, or this delivery is retried later: none may overtake it.
                return False
        return bool(due)

    async def _deliver(
        self, endpoint: LeaseEndpointsRow, delivery: NextDeliveriesRow
    ) -> DeliveryState | None:
        attempted_at, started = datetime.now(UTC), time.perf_counter()
        try:
            async with self.database.system_tx() as conn:
                if not await self._renew_lease(conn, endpoint):
                    return None
                body = await self.render(conn, endpoint, delivery)
        except NotFound as error:
            result = PostResult(error=error.message, refused=True)
        else:
            result = await self.post(endpoint.url, self._headers(endpoint, body), body)
        took_ms = round((time.perf_counter() - started) * 1000)
        state, due_at = self._next_state(delivery, result, attempted_at)
        async with self.database.system_tx() as conn:
            if not await self._renew_lease(conn, endpoint):
                return None
            await queries.record_attempt(
                conn,
                endpoint_id=endpoint.id,
                number=delivery.number,
                state=state,
                due_at=due_at,
                attempted_at=attempted_at,
                answer=result.status,
                error=None if state == "delivered" else _reason(result),
                took_ms=took_ms,
            )
        if state != "delivered":
            log.info("a webhook failed", url=endpoint.url, state=state, reason=_reason(result))
        return state

    async def _renew_lease(self, conn: Connection, endpoint: LeaseEndpointsRow) -> bool:
        renewed = await queries.renew_lease(
            conn, id=endpoint.id, lease=self._lease, lease_time=_LEASE
        )
        return renewed is not None

    def _next_state(
        self, delivery: NextDeliveriesRow, result: PostResult, attempted_at: datetime
    ) -> tuple[DeliveryState, datetime]:
        now = datetime.now(UTC)
        if result.received:
            return "delivered", now
        if result.refused:
            return "dead", now
        return self.retry_policy.after_failure(
            attempts=delivery.attempts + 1,
            created_at=delivery.created_at,
            first_attempt_at=delivery.first_attempt_at or attempted_at,
            now=now,
        )

    def _headers(self, endpoint: LeaseEndpointsRow, body: bytes) -> dict[str, str]:
        custom = {n: v for n, v in endpoint.headers.items() if n.lower() not in _FORBIDDEN_HEADERS}
        headers = {"Content-Type": "application/json"} | custom
        if self.secret is not None:
            headers[SIGNATURE] = signature(self.secret, body)
        return headers


def signature(secret: bytes, body: bytes) -> str:
    """Return the HMAC that authenticates this body to its receiver."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


def _reason(result: PostResult) -> str:
    return result.error or f"The receiver answered {result.status}."
