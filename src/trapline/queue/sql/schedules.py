"""Typed functions of schedules.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApplicationId, JobId, OrganisationId, ScheduleId, SiteId


class ScheduleRow(Struct, frozen=True, gc=False):
    id: ScheduleId
    organisation_id: OrganisationId
    name: str
    name_key: str
    kind: str
    cron: str | None
    every: timedelta | None
    timezone: str
    starts_at: datetime | None
    ends_at: datetime | None
    site_id: SiteId | None
    application_id: ApplicationId | None
    template: Any
    importance: int
    overlap: bool
    catch_up: timedelta | None
    paused_at: datetime | None
    next_at: datetime | None
    last_tick: datetime | None
    last_job_id: JobId | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime


class ScheduleRunRow(Struct, frozen=True, gc=False):
    id: int
    schedule_id: ScheduleId
    organisation_id: OrganisationId
    tick: datetime
    manual: bool
    outcome: str
    job_id: JobId | None
    detail: str | None
    summary: Any
    created_at: datetime


_ADD_SCHEDULE: Final = """
-- name: AddSchedule
INSERT INTO queue.schedule (
    id, organisation_id, name, kind, cron, every, timezone, starts_at, ends_at, site_id,
    application_id, template, importance, overlap, catch_up, next_at, created_by
) VALUES (
    $1, $2, $3, $4, $5,
    $6, $7, $8, $9,
    $10, $11, $12, $13,
    $14, $15, $16, $17
)
RETURNING *
"""


async def add_schedule(
    conn: Connection,
    *,
    id: UUID,
    organisation_id: OrganisationId,
    name: str,
    kind: str,
    cron: str | None,
    every: timedelta | None,
    timezone: str,
    starts_at: datetime | None,
    ends_at: datetime | None,
    site_id: SiteId | None,
    application_id: ApplicationId | None,
    template: Any,
    importance: int,
    overlap: bool,
    catch_up: timedelta | None,
    next_at: datetime | None,
    created_by: str | None,
) -> ScheduleRow:
    """Add a schedule."""
    (row,) = await conn.fetch(
        _ADD_SCHEDULE,
        id,
        organisation_id,
        name,
        kind,
        cron,
        every,
        timezone,
        starts_at,
        ends_at,
        site_id,
        application_id,
        template,
        importance,
        overlap,
        catch_up,
        next_at,
        created_by,
    )
    return ScheduleRow(*row)


_CHANGE_SCHEDULE: Final = """
-- name: ChangeSchedule
UPDATE queue.schedule
SET name = $1, kind = $2, cron = $3, every = $4,
    timezone = $5, starts_at = $6, ends_at = $7,
    site_id = $8, application_id = $9,
    template = $10, importance = $11, overlap = $12,
    catch_up = $13, next_at = $14, updated_at = now()
WHERE id = $15
RETURNING *
"""


async def change_schedule(
    conn: Connection,
    *,
    name: str,
    kind: str,
    cron: str | None,
    every: timedelta | None,
    timezone: str,
    starts_at: datetime | None,
    ends_at: datetime | None,
    site_id: SiteId | None,
    application_id: ApplicationId | None,
    template: Any,
    importance: int,
    overlap: bool,
    catch_up: timedelta | None,
    next_at: datetime | None,
    id: UUID,
) -> ScheduleRow | None:
    """Replace the fields of a schedule."""
    row = await conn.fetchrow(
        _CHANGE_SCHEDULE,
        name,
        kind,
        cron,
        every,
        timezone,
        starts_at,
        ends_at,
        site_id,
        application_id,
        template,
        importance,
        overlap,
        catch_up,
        next_at,
        id,
    )
    return None if row is None else ScheduleRow(*row)


_GET_SCHEDULE: Final = """
-- name: GetSchedule
SELECT * FROM queue.schedule WHERE id = $1
"""


async def get_schedule(conn: Connection, *, schedule_id: ScheduleId) -> ScheduleRow | None:
    """A schedule by its id."""
    row = await conn.fetchrow(_GET_SCHEDULE, schedule_id)
    return None if row is None else ScheduleRow(*row)


_LOCK_SCHEDULE: Final = """
-- name: LockSchedule
SELECT * FROM queue.schedule WHERE id = $1 FOR UPDATE
"""


async def lock_schedule(conn: Connection, *, schedule_id: ScheduleId) -> ScheduleRow | None:
    """Lock a schedule against firing and changes until the transaction ends."""
    row = await conn.fetchrow(_LOCK_SCHEDULE, schedule_id)
    return None if row is None else ScheduleRow(*row)


_SCHEDULE_NAMED: Final = """
-- name: ScheduleNamed
SELECT * FROM queue.schedule
WHERE organisation_id = $1 AND name_key = lower($2)
"""


async def schedule_named(
    conn: Connection, *, organisation_id: OrganisationId, name: str
) -> ScheduleRow | None:
    """A schedule by its name."""
    row = await conn.fetchrow(_SCHEDULE_NAMED, organisation_id, name)
    return None if row is None else ScheduleRow(*row)


_LIST_SCHEDULES: Final = """
-- name: ListSchedules
SELECT * FROM queue.schedule
WHERE organisation_id = $1
    AND ($2::uuid IS NULL OR site_id = $2)
    AND ($3::uuid IS NULL OR application_id = $3)
    AND (created_at, id) < ($4::timestamptz, $5::uuid)
ORDER BY created_at DESC, id DESC
LIMIT $6::integer
"""


async def list_schedules(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    site: UUID | None,
    application: UUID | None,
    before_at: datetime,
    before_id: UUID,
    most: int,
) -> list[ScheduleRow]:
    """An organisation's schedules before a key, newest first."""
    return [
        ScheduleRow(*row)
        for row in await conn.fetch(
            _LIST_SCHEDULES, organisation_id, site, application, before_at, before_id, most
        )
    ]


_LIST_SCHEDULES_OLDEST: Final = """
-- name: ListSchedulesOldest
SELECT * FROM queue.schedule
WHERE organisation_id = $1
    AND ($2::uuid IS NULL OR site_id = $2)
    AND ($3::uuid IS NULL OR application_id = $3)
    AND (created_at, id) > ($4::timestamptz, $5::uuid)
ORDER BY created_at, id
LIMIT $6::integer
"""


async def list_schedules_oldest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    site: UUID | None,
    application: UUID | None,
    after_at: datetime,
    after_id: UUID,
    most: int,
) -> list[ScheduleRow]:
    """As ListSchedules, after a key, oldest first."""
    return [
        ScheduleRow(*row)
        for row in await conn.fetch(
            _LIST_SCHEDULES_OLDEST, organisation_id, site, application, after_at, after_id, most
        )
    ]


_LIST_SCHEDULES_NAMED: Final = """
-- name: ListSchedulesNamed
SELECT * FROM queue.schedule
WHERE organisation_id = $1
    AND ($2::uuid IS NULL OR site_id = $2)
    AND ($3::uuid IS NULL OR application_id = $3)
    AND name_key > lower($4::text)
ORDER BY name_key
LIMIT $5::integer
"""


async def list_schedules_named(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    site: UUID | None,
    application: UUID | None,
    after_name: str,
    most: int,
) -> list[ScheduleRow]:
    """As ListSchedules, after a name, by name. Names are unique without regard to case."""
    return [
        ScheduleRow(*row)
        for row in await conn.fetch(
            _LIST_SCHEDULES_NAMED, organisation_id, site, application, after_name, most
        )
    ]


_LIST_SCHEDULES_NEXT: Final = """
-- name: ListSchedulesNext
SELECT * FROM queue.schedule
WHERE organisation_id = $1
    AND ($2::uuid IS NULL OR site_id = $2)
    AND ($3::uuid IS NULL OR application_id = $3)
    AND ((CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id)
        > ($4::timestamptz, $5::uuid)
ORDER BY (CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id
LIMIT $6::integer
"""


async def list_schedules_next(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    site: UUID | None,
    application: UUID | None,
    after_at: datetime,
    after_id: UUID,
    most: int,
) -> list[ScheduleRow]:
    """As ListSchedules, after a key, by next tick; ended schedules come last."""
    return [
        ScheduleRow(*row)
        for row in await conn.fetch(
            _LIST_SCHEDULES_NEXT, organisation_id, site, application, after_at, after_id, most
        )
    ]


_LABELLED_SCHEDULES: Final = """
-- name: LabelledSchedules
SELECT * FROM queue.schedule
WHERE organisation_id = $1
    AND template -> 'labels' -> $2::text IS NOT NULL
ORDER BY created_at DESC, id DESC
OFFSET $3::bigint LIMIT $4::integer
"""


async def labelled_schedules(
    conn: Connection, *, organisation_id: OrganisationId, label: str, skip: int, most: int
) -> list[ScheduleRow]:
    """An organisation's schedules whose template has a label, newest first."""
    return [
        ScheduleRow(*row)
        for row in await conn.fetch(_LABELLED_SCHEDULES, organisation_id, label, skip, most)
    ]


_DUE_SCHEDULES: Final = """
-- name: DueSchedules
SELECT id FROM queue.schedule WHERE next_at <= $1::timestamptz
ORDER BY next_at LIMIT $2::integer
"""


async def due_schedules(conn: Connection, *, at: datetime, most: int) -> list[ScheduleId]:
    """Schedules whose next tick is due."""
    return [row[0] for row in await conn.fetch(_DUE_SCHEDULES, at, most)]


_LOCK_DUE: Final = """
-- name: LockDue
SELECT * FROM queue.schedule
WHERE id = $1 AND next_at <= $2::timestamptz
FOR UPDATE SKIP LOCKED
"""


async def lock_due(
    conn: Connection, *, schedule_id: ScheduleId, at: datetime
) -> ScheduleRow | None:
    """Lock a due schedule; no row if another process fires it or has fired it."""
    row = await conn.fetchrow(_LOCK_DUE, schedule_id, at)
    return None if row is None else ScheduleRow(*row)


_MOVE_SCHEDULE: Final = """
-- name: MoveSchedule
UPDATE queue.schedule
SET next_at = $1, last_tick = coalesce($2, last_tick),
    last_job_id = coalesce($3, last_job_id)
WHERE id = $4
"""


async def move_schedule(
    conn: Connection,
    *,
    next_at: datetime | None,
    last_tick: datetime | None,
    last_job_id: JobId | None,
    schedule_id: ScheduleId,
) -> None:
    """Store the last run and the next tick."""
    await conn.execute(_MOVE_SCHEDULE, next_at, last_tick, last_job_id, schedule_id)


_PAUSE_SCHEDULE: Final = """
-- name: PauseSchedule
UPDATE queue.schedule SET paused_at = now(), next_at = NULL, updated_at = now()
WHERE id = $1 AND paused_at IS NULL
"""


async def pause_schedule(conn: Connection, *, schedule_id: ScheduleId) -> int:
    """Pause a schedule."""
    return int((await conn.execute(_PAUSE_SCHEDULE, schedule_id)).rpartition(" ")[2])


_RESUME_SCHEDULE: Final = """
-- name: ResumeSchedule
UPDATE queue.schedule SET paused_at = NULL, next_at = $1, updated_at = now()
WHERE id = $2 AND paused_at IS NOT NULL
"""


async def resume_schedule(
    conn: Connection, *, next_at: datetime | None, schedule_id: ScheduleId
) -> int:
    """Resume a paused schedule at its next tick."""
    return int((await conn.execute(_RESUME_SCHEDULE, next_at, schedule_id)).rpartition(" ")[2])


_REMOVE_SCHEDULE: Final = """
-- name: RemoveSchedule
DELETE FROM queue.schedule WHERE id = $1
"""


async def remove_schedule(conn: Connection, *, schedule_id: ScheduleId) -> int:
    """Delete a schedule with its runs; its jobs stay."""
    return int((await conn.execute(_REMOVE_SCHEDULE, schedule_id)).rpartition(" ")[2])


_REMOVE_NAMED: Final = """
-- name: RemoveNamed
DELETE FROM queue.schedule
WHERE organisation_id = $1 AND name_key = ANY ($2::text[])
"""


async def remove_named(
    conn: Connection, *, organisation_id: OrganisationId, names: Sequence[str]
) -> int:
    """Delete schedules by name with their runs; their jobs stay."""
    return int((await conn.execute(_REMOVE_NAMED, organisation_id, names)).rpartition(" ")[2])


_RECORD_RUN: Final = """
-- name: RecordRun
INSERT INTO queue.schedule_run (schedule_id, organisation_id, tick, manual, outcome, job_id, detail)
VALUES (
    $1, $2, $3, $4,
    $5, $6, $7)
ON CONFLICT (schedule_id, tick) WHERE NOT manual DO NOTHING
"""


async def record_run(
    conn: Connection,
    *,
    schedule_id: ScheduleId,
    organisation_id: OrganisationId,
    tick: datetime,
    manual: bool,
    outcome: str,
    job_id: JobId | None,
    detail: str | None,
) -> int:
    """Record the outcome of a tick; no row if it is recorded already."""
    return int(
        (
            await conn.execute(
                _RECORD_RUN, schedule_id, organisation_id, tick, manual, outcome, job_id, detail
            )
        ).rpartition(" ")[2]
    )


_LIST_RUNS: Final = """
-- name: ListRuns
SELECT * FROM queue.schedule_run
WHERE schedule_id = $1
    AND ($2::bigint IS NULL OR id < $2)
ORDER BY id DESC OFFSET $3::bigint LIMIT $4::integer
"""


async def list_runs(
    conn: Connection, *, schedule_id: ScheduleId, before: int | None, skip: int, most: int
) -> list[ScheduleRunRow]:
    """The runs of a schedule, newest first."""
    return [
        ScheduleRunRow(*row)
        for row in await conn.fetch(_LIST_RUNS, schedule_id, before, skip, most)
    ]


_STORE_RUN_SUMMARY: Final = """
-- name: StoreRunSummary
UPDATE queue.schedule_run SET summary = $1
WHERE id = $2 AND summary IS NULL
"""


async def store_run_summary(conn: Connection, *, summary: Any, run_id: int) -> None:
    """Store the final summary of a run's job."""
    await conn.execute(_STORE_RUN_SUMMARY, summary, run_id)


_GET_RUN: Final = """
-- name: GetRun
SELECT * FROM queue.schedule_run
WHERE schedule_id = $1 AND id = $2
"""


async def get_run(
    conn: Connection, *, schedule_id: ScheduleId, run_id: int
) -> ScheduleRunRow | None:
    """One run of a schedule."""
    row = await conn.fetchrow(_GET_RUN, schedule_id, run_id)
    return None if row is None else ScheduleRunRow(*row)


_OPEN_JOB: Final = """
-- name: OpenJob
SELECT EXISTS (
    SELECT FROM queue.job
    WHERE id = $1 AND status IN ('pending', 'running', 'paused')) AS "open!"
"""


async def open_job(conn: Connection, *, job_id: JobId | None) -> bool:
    """Whether a job is open."""
    value: bool = await conn.fetchval(_OPEN_JOB, job_id)
    return value


_DROP_OLD_RUNS: Final = """
-- name: DropOldRuns
DELETE FROM queue.schedule_run WHERE id = ANY (ARRAY(
    SELECT r.id FROM queue.schedule_run r
    WHERE r.created_at < now() - $1::interval
    ORDER BY r.created_at LIMIT $2::integer))
"""


async def drop_old_runs(conn: Connection, *, keep: timedelta, most: int) -> int:
    """Delete old runs, in batches."""
    return int((await conn.execute(_DROP_OLD_RUNS, keep, most)).rpartition(" ")[2])
