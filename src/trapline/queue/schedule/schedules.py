"""Schedules: rules that create jobs, exactly one a tick with any number of processes.

A schedule's template describes the job; the caller passes a `CreateJob` that can read it. The queue
itself knows nothing of crawling.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import asyncpg
import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    LimitReached,
    NotFound,
    TooLarge,
    TraplineError,
)
from trapline.logs import get_logger
from trapline.model import ApplicationId, JobId, OrganisationId, ScheduleId, SiteId, new_uuid
from trapline.queue.kinds import check_json
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow, ScheduleRunRow

log = get_logger(__name__)

CreateJob = Callable[[Connection, ScheduleRow, datetime], Awaitable[JobId]]
"""Creates the job of a tick from a schedule's template, in the transaction that records the tick."""

# Permanent errors; after any other the tick is retried.
_PERMANENT_ERRORS: Final = (
    InvalidInput,
    NotFound,
    Conflict,
    Forbidden,
    TooLarge,
    LimitReached,
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
)

DEFAULT_IMPORTANCE: Final = 5
_MOST_IMPORTANT: Final = 10
_AT_ONCE: Final = 100
_LONGEST_NAME: Final = 200


def priority_of(importance: int) -> int:
    """Translate 1 to 10, higher first, into the queue's own order, where lower runs first."""
    if not 1 <= importance <= _MOST_IMPORTANT:
        raise InvalidInput("A priority is from 1 to 10; higher runs first.")
    return DEFAULT_IMPORTANCE - importance


@dataclass(frozen=True, slots=True)
class Plan:
    """The definition of a schedule."""

    name: str
    rule: Rule
    template: Mapping[str, Any] = field(default_factory=dict)
    site_id: SiteId | None = None
    application_id: ApplicationId | None = None
    importance: int = DEFAULT_IMPORTANCE
    overlap: bool = False
    catch_up: timedelta | None = None

    def check(self) -> None:
        if not self.name.strip() or len(self.name) > _LONGEST_NAME or "\0" in self.name:
            raise InvalidInput("A schedule's name has from 1 to 200 characters.")
        if self.catch_up is not None and self.catch_up < timedelta():
            raise InvalidInput("The time to catch up cannot be negative.")
        priority_of(self.importance)
        self.rule.check()
        check_json(msgspec.json.encode(self.template), "The template")


def rule_of(row: ScheduleRow) -> Rule:
    return Rule(
        msgspec.convert(row.kind, Any),
        row.cron,
        row.every,
        row.timezone,
        row.starts_at,
        row.ends_at,
    )


async def add(
    conn: Connection,
    organisation_id: OrganisationId,
    plan: Plan,
    *,
    now: datetime,
    by: str | None = None,
) -> ScheduleRow:
    """Write a schedule; its first tick may be due at once."""
    plan.check()
    rule, first = plan.rule, plan.rule.first(now)
    if first is None:
        raise InvalidInput("The schedule would end before its first tick.")
    if first < now - timedelta(minutes=1):
        raise InvalidInput(f"The time of the run, {first.isoformat()}, has passed.")
    try:
        return await queries.add_schedule(
            conn,
            id=ScheduleId(new_uuid()),
            organisation_id=organisation_id,
            name=plan.name.strip(),
            kind=rule.kind,
            cron=rule.cron,
            every=rule.every,
            timezone=rule.timezone,
            # An interval without a start counts from now on, also after a restart.
            starts_at=rule.starts_at or (now if rule.every is not None else None),
            ends_at=rule.ends_at,
            site_id=plan.site_id,
            application_id=plan.application_id,
            template=dict(plan.template),
            importance=plan.importance,
            overlap=plan.overlap,
            catch_up=plan.catch_up,
            next_at=first,
            created_by=by,
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(f"There already is a schedule named {plan.name!r}.") from None


async def change(
    conn: Connection, schedule_id: ScheduleId, plan: Plan, *, now: datetime
) -> ScheduleRow:
    """Replace the definition of a schedule. Its next tick follows the new rule; a paused one stays paused."""
    plan.check()
    old = await _locked(conn, schedule_id)
    rule = plan.rule
    same = rule == rule_of(old)
    following = old.next_at if same or old.paused_at is not None else rule.first(now)
    try:
        row = await queries.change_schedule(
            conn,
            id=schedule_id,
            name=plan.name.strip(),
            kind=rule.kind,
            cron=rule.cron,
            every=rule.every,
            timezone=rule.timezone,
            starts_at=rule.starts_at or (now if rule.every is not None else None),
            ends_at=rule.ends_at,
            site_id=plan.site_id,
            application_id=plan.application_id,
            template=dict(plan.template),
            importance=plan.importance,
            overlap=plan.overlap,
            catch_up=plan.catch_up,
            next_at=following,
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(f"There already is a schedule named {plan.name!r}.") from None
    return _found(row, str(schedule_id))


async def get(conn: Connection, schedule_id: ScheduleId) -> ScheduleRow:
    return _found(await queries.get_schedule(conn, schedule_id=schedule_id), str(schedule_id))


async def find(conn: Connection, organisation_id: OrganisationId, reference: str) -> ScheduleRow:
    """Return a schedule by its id or its name."""
    try:
        return await get(conn, ScheduleId(UUID(reference)))
    except ValueError:
        row = await queries.schedule_named(conn, organisation_id=organisation_id, name=reference)
        return _found(row, reference)


async def pause(conn: Connection, schedule_id: ScheduleId) -> None:
    """Create no jobs until the schedule is resumed; ticks during the pause are dropped."""
    if not await queries.pause_schedule(conn, schedule_id=schedule_id):
        await get(conn, schedule_id)
        raise Conflict("The schedule is paused already.")


async def resume(conn: Connection, schedule_id: ScheduleId, *, now: datetime) -> None:
    """Continue at the next tick; those during the pause are not caught up."""
    row = await _locked(conn, schedule_id)
    following = rule_of(row).next(now)
    if not await queries.resume_schedule(conn, schedule_id=schedule_id, next_at=following):
        raise Conflict("The schedule is not paused.")


async def remove(conn: Connection, schedule_id: ScheduleId) -> None:
    """Delete a schedule; the jobs that it made stay."""
    if not await queries.remove_schedule(conn, schedule_id=schedule_id):
        raise NotFound(f"There is no schedule {schedule_id}.")


async def runs(
    conn: Connection,
    schedule_id: ScheduleId,
    *,
    skip: int = 0,
    most: int = 50,
) -> list[ScheduleRunRow]:
    """Return the runs of a schedule, latest first."""
    return await queries.list_runs(conn, schedule_id=schedule_id, before=None, skip=skip, most=most)


def next_runs(row: ScheduleRow, count: int) -> list[datetime]:
    """Return the ticks that come next; none while it is paused."""
    if row.next_at is None:
        return []
    return [row.next_at, *rule_of(row).upcoming(row.next_at, count - 1)]


async def run_now(
    conn: Connection, schedule_id: ScheduleId, create: CreateJob, *, now: datetime
) -> JobId:
    """Create a job at once, paused or not; the ticks of the rule stay as they are."""
    row = await _locked(conn, schedule_id)
    if not row.overlap and await queries.open_job(conn, job_id=row.last_job_id):
        raise Conflict(f"The schedule's job {row.last_job_id} still runs.")
    job_id = await create(conn, row, now)
    await _note(conn, row, now, "created", job_id=job_id, manual=True)
    await queries.move_schedule(
        conn, schedule_id=row.id, next_at=row.next_at, last_tick=None, last_job_id=job_id
    )
    return job_id


async def fire_due(
    database: Database, create: CreateJob, *, catch_up: timedelta, now: datetime | None = None
) -> int:
    """Create the jobs of all due ticks, each in a transaction of its own."""
    at = now or datetime.now(UTC)
    async with database.system_tx() as conn:
        due = await queries.due_schedules(conn, at=at, most=_AT_ONCE)
    fired = 0
    for schedule_id in due:
        try:
            async with database.system_tx() as conn:
                fired += await _fire(conn, schedule_id, create, at=at, catch_up=catch_up)
        except _PERMANENT_ERRORS as error:
            # The run is recorded as failed, so that it does not hold up the others.
            log.warning("a tick made no job", schedule=str(schedule_id), error=str(error))
            async with database.system_tx() as conn:
                await _give_up(conn, schedule_id, str(error), at=at)
        except (TraplineError, asyncpg.PostgresError) as error:
            log.warning("a tick is retried", schedule=str(schedule_id), error=str(error))
    return fired


async def _fire(
    conn: Connection,
    schedule_id: ScheduleId,
    create: CreateJob,
    *,
    at: datetime,
    catch_up: timedelta,
) -> int:
    row = await queries.lock_due(conn, schedule_id=schedule_id, at=at)
    if row is None or row.next_at is None:
        return 0
    rule, grace = rule_of(row), row.catch_up if row.catch_up is not None else catch_up
    tick = latest_due_tick(rule, row.next_at, at=at, grace=grace)
    job_id = None
    if tick != row.next_at:
        await _note(conn, row, row.next_at, "missed", detail=_missed(tick, at, grace))
    if tick is not None:
        job_id = await _create(conn, row, create, tick)
    await queries.move_schedule(
        conn,
        schedule_id=row.id,
        next_at=rule.next(at),
        last_tick=tick or row.next_at,
        last_job_id=job_id,
    )
    return 0 if job_id is None else 1


async def _create(
    conn: Connection, row: ScheduleRow, create: CreateJob, tick: datetime
) -> JobId | None:
    if not row.overlap and await queries.open_job(conn, job_id=row.last_job_id):
        await _note(conn, row, tick, "overlapped", detail=f"Job {row.last_job_id} still runs.")
        return None
    job_id = await create(conn, row, tick)
    await _note(conn, row, tick, "created", job_id=job_id)
    return job_id


async def _give_up(conn: Connection, schedule_id: ScheduleId, why: str, *, at: datetime) -> None:
    row = await queries.lock_due(conn, schedule_id=schedule_id, at=at)
    if row is None or row.next_at is None:
        return
    await _note(conn, row, row.next_at, "failed", detail=why[:1000])
    await queries.move_schedule(
        conn,
        schedule_id=row.id,
        next_at=rule_of(row).next(at),
        last_tick=row.next_at,
        last_job_id=None,
    )


def latest_due_tick(
    rule: Rule, first: datetime, *, at: datetime, grace: timedelta
) -> datetime | None:
    """Return the latest tick up to now, if it is not too late for it. Earlier ones are merged in it:
    a crawl that was missed five times is made up for once.
    """
    latest = first if at - first <= grace else None
    for tick in rule.after(max(first, at - grace - timedelta(seconds=1))):
        if tick > at:
            break
        if at - tick <= grace:
            latest = tick
    return latest


def _missed(tick: datetime | None, at: datetime, grace: timedelta) -> str:
    if tick is None:
        return f"It was {at.replace(microsecond=0).isoformat()} then: more than {grace} too late."
    return f"It was made up for by the tick of {tick.isoformat()}."


async def _note(  # noqa: PLR0913 (one row)
    conn: Connection,
    row: ScheduleRow,
    tick: datetime,
    outcome: str,
    *,
    job_id: JobId | None = None,
    detail: str | None = None,
    manual: bool = False,
) -> None:
    noted = await queries.record_run(
        conn,
        schedule_id=row.id,
        organisation_id=row.organisation_id,
        tick=tick,
        manual=manual,
        outcome=outcome,
        job_id=job_id,
        detail=detail,
    )
    if not noted:
        raise Conflict(f"The tick of {tick.isoformat()} was dealt with already.")


async def _locked(conn: Connection, schedule_id: ScheduleId) -> ScheduleRow:
    row = await queries.lock_schedule(conn, schedule_id=schedule_id)
    return _found(row, str(schedule_id))


def _found(row: ScheduleRow | None, reference: str) -> ScheduleRow:
    if row is None:
        raise NotFound(f"There is no schedule {reference!r}.")
    return row
