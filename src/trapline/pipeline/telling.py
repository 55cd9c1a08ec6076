"""Step nine, tell: the event log becomes deliveries and live feeds."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import asyncpg

from trapline.db.connection import LOST, Connection
from trapline.db.pool import Database
from trapline.deliver import retention, webhooks
from trapline.deliver.courier import Courier, Posted, Render
from trapline.deliver.feeds import Feeds
from trapline.deliver.happening import Happening
from trapline.errors import DatabaseUnavailable
from trapline.fetch.posting import Poster
from trapline.logs import get_logger
from trapline.model import JobId, OrganisationId
from trapline.pipeline import usage
from trapline.queue import events
from trapline.queue.maintenance.duty import Duty
from trapline.queue.notices import Ears
from trapline.queue.sql.events import EventRow, EventsSinceRow

log = get_logger(__name__)

CONSUMER: Final = "webhooks"
_POLL: Final = 1.0
_BATCH: Final = 1000
# What happens within this time is planned together: a server that answers hundreds of scrapes a
# second would otherwise plan as often.
_REST: Final = 0.05


def feeds(database: Database, ears: Ears) -> Feeds:
    """Return the live feeds of this process, woken by what its ears hear."""

    async def read(
        organisation_id: OrganisationId, job_id: JobId, after: int, most: int
    ) -> Sequence[Happening]:
        async with database.tenant_tx(organisation_id) as conn:
            rows = await events.of_job(conn, job_id, after=after, most=most)
        return [_happening(row) for row in rows]

    found = Feeds(read)
    ears.on_jobs(found.wake)
    return found


@dataclass(slots=True)
class Telling:
    """Reads the log and has the courier deliver, in every process; each event is planned once."""

    database: Database
    poster: Poster
    render: Render
    ears: Ears
    courier: Courier = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        secret = self.database.settings.webhook_secret
        self.courier = Courier(
            self.database,
            self._post,
            self.render,
            secret=None if secret is None else secret.get_secret_value().encode(),
        )
        self.ears.on_jobs(lambda _: self._news.set())

    async def run(self) -> None:
        """Tell for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._plan(), name="webhook planning")
            group.create_task(self.courier.run(), name="webhook courier")

    async def _plan(self) -> None:
        while True:
            self._news.clear()
            try:
                while await self._some() == _BATCH:
                    pass
            except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                log.warning("webhooks are planned later", error=str(error))
            await asyncio.sleep(_REST)
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await self._news.wait()

    async def _some(self) -> int:
        planned = 0

        async def handle(conn: Connection, rows: Sequence[EventsSinceRow]) -> None:
            """Plan what is to be delivered, and count what was used, once for each event."""
            nonlocal planned
            happenings = [_happening(row) for row in rows]
            planned = await webhooks.plan(conn, happenings)
            await usage.count(conn, happenings)

        some = await events.consume(self.database, CONSUMER, handle, most=_BATCH)
        if planned:
            self.courier.wake()
        return some

    async def _post(self, url: str, headers: dict[str, str], body: bytes) -> Posted:
        answered = await self.poster.post(url, headers, body)
        return Posted(answered.status, answered.error, refused=answered.unsafe)


def _happening(row: EventRow | EventsSinceRow) -> Happening:
    return Happening(
        row.job_id,
        row.organisation_id,
        row.number,
        row.type,
        row.created_at,
        row.task_id,
        row.data,
    )


def duties() -> list[Duty]:
    """Return what keeps the deliveries few."""
    return [Duty("webhook retention", retention.drop, timedelta(minutes=30))]
