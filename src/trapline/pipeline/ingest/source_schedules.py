"""The schedules that refresh sources: by a source's own interval, else by its application's.

Each is an ordinary schedule, named after its source, so it is listed, paused and run like any other.
This module keeps it in step with the source and the application.
"""

from datetime import UTC, datetime, timedelta

from trapline.db.connection import Connection
from trapline.errors import Conflict
from trapline.knowledge.sql import applications
from trapline.knowledge.sql import sources as source_queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, OrganisationId, SourceId
from trapline.queue.schedule import schedules
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.schedule.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow

SOURCE = "source"


def name_of(source_id: SourceId) -> str:
    """Return the name of a source's schedule, which stays when the source is renamed."""
    return f"source {source_id}"


async def sync(conn: Connection, source: SourceRow) -> None:
    """Create, change or remove a source's schedule as its interval says; a paused one stays paused."""
    every = None if source.kind == "file" else await _interval(conn, source)
    schedule = await find(conn, source.organisation_id, source.id)
    if every is None:
        if schedule is not None:
            await schedules.remove(conn, schedule.id)
        return
    plan = _plan(source, every)
    now = datetime.now(UTC)
    if schedule is None:
        await schedules.add(conn, source.organisation_id, plan, now=now)
    elif schedule.every != every:
        await schedules.change(conn, schedule.id, plan, now=now)


async def sync_application(conn: Connection, application_id: ApplicationId) -> None:
    """Do the same for all fetched sources of an application."""
    for source in await source_queries.fetched_sources(conn, application_id=application_id):
        await sync(conn, source)


async def set_paused(conn: Connection, source: SourceRow, *, paused: bool) -> None:
    """Pause or resume a source's schedule, if it is not so already."""
    schedule = await find(conn, source.organisation_id, source.id)
    if schedule is None:
        raise Conflict("The source has no schedule: set how often it is fetched first.")
    if paused and schedule.paused_at is None:
        await schedules.pause(conn, schedule.id)
    elif not paused and schedule.paused_at is not None:
        await schedules.resume(conn, schedule.id, now=datetime.now(UTC))


async def remove(
    conn: Connection, organisation_id: OrganisationId, source_ids: list[SourceId]
) -> None:
    """Remove the schedules of deleted sources."""
    await queries.remove_named(
        conn, organisation_id=organisation_id, names=[name_of(one) for one in source_ids]
    )


async def find(
    conn: Connection, organisation_id: OrganisationId, source_id: SourceId
) -> ScheduleRow | None:
    return await queries.schedule_named(
        conn, organisation_id=organisation_id, name=name_of(source_id)
    )


async def _interval(conn: Connection, source: SourceRow) -> timedelta | None:
    if source.rescrape_every is not None or source.application_id is None:
        return source.rescrape_every
    row = await applications.get_application(conn, application_id=source.application_id)
    return None if row is None else row.rescrape_every


def _plan(source: SourceRow, every: timedelta) -> Plan:
    return Plan(
        name_of(source.id),
        Rule("recurring", every=every),
        {"kind": SOURCE, "source_id": str(source.id)},
        application_id=source.application_id,
    )
