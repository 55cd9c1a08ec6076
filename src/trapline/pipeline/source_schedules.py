"""When a source is fetched again: its own interval, else its application's, kept as a schedule.

The schedule is an ordinary one, named after the source, so it is listed, paused and run like any
other; here it is kept true as sources and applications change.
"""

from datetime import UTC, datetime, timedelta

from trapline.db.connection import Connection
from trapline.errors import Conflict
from trapline.knowledge.sql import applications
from trapline.knowledge.sql import sources as source_queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, OrganisationId, SourceId
from trapline.queue import schedules
from trapline.queue.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow
from trapline.queue.ticks import Rule

SOURCE = "source"


def name_of(source_id: SourceId) -> str:
    """Return the name of a source's schedule, which stays when the source is renamed."""
    return f"source {source_id}"


async def follow(conn: Connection, source: SourceRow) -> None:
    """Make a source's schedule what it and its application say; a paused one stays paused."""
    every = None if source.kind == "file" else await _interval(conn, source)
    there = await of(conn, source.organisation_id, source.id)
    if every is None:
        if there is not None:
            await schedules.remove(conn, there.id)
        return
    plan = _plan(source, every)
    now = datetime.now(UTC)
    if there is None:
        await schedules.add(conn, source.organisation_id, plan, now=now)
    elif there.every != every:
        await schedules.change(conn, there.id, plan, now=now)


async def follow_application(conn: Connection, application_id: ApplicationId) -> None:
    """Do the same for all sources of an application that are fetched."""
    for source in await source_queries.fetched_sources(conn, application_id=application_id):
        await follow(conn, source)


async def hold(conn: Connection, source: SourceRow, *, paused: bool) -> None:
    """Pause fetching a source again, or go on with it; what is so already stays so."""
    there = await of(conn, source.organisation_id, source.id)
    if there is None:
        raise Conflict("The source is not fetched again by itself: say how often first.")
    if paused and there.paused_at is None:
        await schedules.pause(conn, there.id)
    elif not paused and there.paused_at is not None:
        await schedules.resume(conn, there.id, now=datetime.now(UTC))


async def forget(
    conn: Connection, organisation_id: OrganisationId, source_ids: list[SourceId]
) -> None:
    """Remove the schedules of sources that are deleted."""
    await queries.remove_named(
        conn, organisation_id=organisation_id, names=[name_of(one) for one in source_ids]
    )


async def of(
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
