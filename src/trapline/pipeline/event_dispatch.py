"""Notify, step nine: turns the event log into webhook deliveries and live streams."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import asyncpg

from trapline.db.connection import LOST, Connection
from trapline.db.pool import Database
from trapline.deliver import delivery_retention, subscriptions
from trapline.deliver.event import Event
from trapline.deliver.live_streams import LiveStreams
from trapline.deliver.webhook_sender import PostResult, Render, WebhookSender
from trapline.errors import DatabaseUnavailable
from trapline.fetch.post import Poster
from trapline.logs import get_logger
from trapline.model import JobId, OrganisationId
from trapline.pipeline.reports import usage
from trapline.queue import events
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.notify import Listener
from trapline.queue.sql.events import EventRow, EventsSinceRow

log = get_logger(__name__)

CONSUMER: Final = "webhooks"
_POLL_SECONDS: Final = 1.0
_BATCH: Final = 1000
# Events of this span are planned together: a server that answers hundreds of scrapes a second would
# otherwise plan as often.
_COALESCE_SECONDS: Final = 0.05


def live_streams(database: Database, listener: Listener) -> LiveStreams:
    """Return the live streams of this process, woken by notifications."""

    async def read(
        organisation_id: OrganisationId, job_id: JobId, after: int, most: int
    ) -> Sequence[Event]:
        async with database.tenant_tx(organisation_id) as conn:
            rows = await events.list_events(conn, job_id, after=after, most=most)
        return [_event(row) for row in rows]

    streams = LiveStreams(read)
    listener.on_jobs(streams.wake)
    return streams


@dataclass(slots=True)
class EventDispatcher:
    """Plans deliveries from the event log and runs the sender, in every process; an event is planned once."""

    database: Database
    poster: Poster
    render: Render
    listener: Listener
    webhook_sender: WebhookSender = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        secret = self.database.settings.webhooks.secret
        self.webhook_sender = WebhookSender(
            self.database,
            self._post,
            self.render,
            secret=None if secret is None else secret.get_secret_value().encode(),
        )
        self.listener.on_jobs(lambda _: self._wake.set())

    async def run(self) -> None:
        """Plan and send until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._plan_forever(), name="webhook planning")
            group.create_task(self.webhook_sender.run(), name="webhook sender")

    async def _plan_forever(self) -> None:
        while True:
            self._wake.clear()
            try:
                while await self._plan_batch() == _BATCH:
                    pass
            except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                log.warning("planning of webhooks failed; it is tried again", error=str(error))
            await asyncio.sleep(_COALESCE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._wake.wait()

    async def _plan_batch(self) -> int:
        planned = 0

        async def handle(conn: Connection, rows: Sequence[EventsSinceRow]) -> None:
            """Plan the deliveries and count the usage of each event, once."""
            nonlocal planned
            batch = [_event(row) for row in rows]
            planned = await subscriptions.add_deliveries(conn, batch)
            await usage.count_events(conn, batch)

        consumed = await events.consume(self.database, CONSUMER, handle, most=_BATCH)
        if planned:
            self.webhook_sender.wake()
        return consumed

    async def _post(self, url: str, headers: dict[str, str], body: bytes) -> PostResult:
        response = await self.poster.post(url, headers, body)
        return PostResult(response.status, response.error, refused=response.unsafe)


def _event(row: EventRow | EventsSinceRow) -> Event:
    return Event(
        row.job_id,
        row.organisation_id,
        row.number,
        row.type,
        row.created_at,
        row.task_id,
        row.data,
    )


def duties() -> list[Duty]:
    return [Duty("webhook retention", delivery_retention.drop, timedelta(minutes=30))]
