"""`/api/schedules`: schedules that create jobs."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant, Writer, actor_name
from trapline.db.keyset import LAST_NUMBER, Order
from trapline.model import ApplicationId, JobId, ScheduleId, SiteId
from trapline.pipeline import job_templates
from trapline.queue.schedule import schedule_list, schedules
from trapline.queue.schedule.recurrence import Rule, ScheduleKind
from trapline.queue.schedule.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow

router = APIRouter(prefix="/api/schedules", tags=["schedules"])

_NEXT_RUNS = 5
_LAST_RUNS = 20
_TEN_YEARS = 3660 * 86400
_RUNS = Order(queries.list_runs, ("before",), lambda run: run.id, LAST_NUMBER)

_TEMPLATE: dict[str, Any] = {
    "kind": "crawl",
    "url": "https://example.com/docs/",
    "options": {"limit": 500},
}


class SchedulePlan(BaseModel):
    """What a schedule says. Recurring ones have a cron rule or a number of seconds."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "name": "docs every night",
                "kind": "recurring",
                "cron": "30 2 * * *",
                "timezone": "Europe/Berlin",
                "template": _TEMPLATE,
                "priority": 7,
            }
        },
    )

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
    kind: ScheduleKind = "recurring"
    cron: Annotated[str | None, Field(max_length=200, examples=["30 2 * * *"])] = None
    every_seconds: Annotated[int | None, Field(ge=60, le=_TEN_YEARS)] = None
    timezone: Annotated[str, Field(max_length=100, examples=["Europe/Berlin"])] = "UTC"
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    site_id: UUID | None = None
    application_id: UUID | None = None
    template: Annotated[
        dict[str, Any],
        Field(
            description="What each run does: `crawl`, `map` or `scrape` of a `url`,"
            " `batch_scrape` of `urls`, or `source` with a `source_id` to fetch again.",
            examples=[_TEMPLATE],
        ),
    ]
    priority: Annotated[int, Field(ge=1, le=10, description="Higher runs first.")] = 5
    overlap: Annotated[bool, Field(description="Run also while the last run's job goes on.")] = (
        False
    )
    catch_up_seconds: Annotated[
        int | None,
        Field(ge=0, le=7 * 86400, description="How late a missed run is made up for."),
    ] = None

    def plan(self) -> Plan:
        site_id = None if self.site_id is None else SiteId(self.site_id)
        job_templates.parse(self.template, site_id)
        return Plan(
            self.name,
            Rule(
                self.kind,
                self.cron,
                _seconds(self.every_seconds),
                self.timezone,
                self.starts_at,
                self.ends_at,
            ),
            self.template,
            site_id,
            None if self.application_id is None else ApplicationId(self.application_id),
            self.priority,
            self.overlap,
            _seconds(self.catch_up_seconds),
        )


class Schedule(SchedulePlan):
    """A schedule with what it does next."""

    id: UUID
    paused: bool
    next_at: datetime | None
    next_runs: Annotated[list[datetime], Field(description="None while it is paused.")]
    last_tick: datetime | None
    last_job_id: UUID | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: ScheduleRow) -> "Schedule":
        return cls(
            id=row.id,
            name=row.name,
            kind=schedules.rule_of(row).kind,
            cron=row.cron,
            every_seconds=None if row.every is None else round(row.every.total_seconds()),
            timezone=row.timezone,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            site_id=row.site_id,
            application_id=row.application_id,
            template=row.template,
            priority=row.importance,
            overlap=row.overlap,
            catch_up_seconds=None if row.catch_up is None else round(row.catch_up.total_seconds()),
            paused=row.paused_at is not None,
            next_at=row.next_at,
            next_runs=schedules.next_runs(row, _NEXT_RUNS),
            last_tick=row.last_tick,
            last_job_id=row.last_job_id,
            created_by=row.created_by,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class ScheduleRun(BaseModel):
    """What became of one tick."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    tick: datetime
    manual: bool
    outcome: Literal["created", "missed", "overlapped", "failed"]
    job_id: UUID | None
    detail: str | None
    created_at: datetime


class StartedJob(BaseModel):
    """The job that was made."""

    job_id: UUID


@router.get("")
async def list_schedules(
    conn: Tenant,
    principal: Reader,
    site_id: Annotated[UUID | None, Query()] = None,
    application_id: Annotated[UUID | None, Query()] = None,
    sort: schedule_list.Sort = "newest",
    cursor: Cursor = None,
    most: Most = 50,
) -> Page[Schedule]:
    """List schedules: newest or oldest first, by name, or what ticks next first."""
    selected = schedule_list.schedules_of(
        principal.organisation_id, site_id=site_id, application_id=application_id
    )
    rows, following = await pagination.read_page(conn, selected, sort, cursor, most)
    return Page(items=[Schedule.of(row) for row in rows], next=following)


@router.post("", status_code=201)
async def add_schedule(conn: Tenant, principal: Writer, new: SchedulePlan) -> Schedule:
    """Add a schedule; one of kind `one_time` runs at once."""
    plan = new.plan()
    await job_templates.require_owned(conn, principal.organisation_id, plan)
    row = await schedules.add(
        conn, principal.organisation_id, plan, now=datetime.now(UTC), by=actor_name(principal)
    )
    return Schedule.of(row)


@router.get("/{schedule_id}")
async def get_schedule(conn: Tenant, principal: Reader, schedule_id: UUID) -> Schedule:
    """Show a schedule with its next runs."""
    del principal
    return Schedule.of(await schedules.get(conn, ScheduleId(schedule_id)))


@router.put("/{schedule_id}")
async def change_schedule(
    conn: Tenant, principal: Writer, schedule_id: UUID, new: SchedulePlan
) -> Schedule:
    """Replace what a schedule says; a paused one stays paused."""
    plan = new.plan()
    await job_templates.require_owned(conn, principal.organisation_id, plan)
    row = await schedules.change(conn, ScheduleId(schedule_id), plan, now=datetime.now(UTC))
    return Schedule.of(row)


@router.delete("/{schedule_id}", status_code=204)
async def remove_schedule(conn: Tenant, principal: Writer, schedule_id: UUID) -> None:
    """Delete a schedule; the jobs that it created stay."""
    del principal
    await schedules.remove(conn, ScheduleId(schedule_id))


@router.get("/{schedule_id}/runs")
async def list_runs(
    conn: Tenant,
    principal: Reader,
    schedule_id: UUID,
    cursor: Cursor = None,
    most: Most = _LAST_RUNS,
) -> Page[ScheduleRun]:
    """List what became of a schedule's ticks, latest first: the skipped ones too, with the reason."""
    del principal
    row = await schedules.get(conn, ScheduleId(schedule_id))
    filters = {"schedule_id": row.id, "skip": 0}
    rows, following = await pagination.read_order(conn, _RUNS, filters, cursor, most)
    return Page(items=[ScheduleRun.model_validate(run) for run in rows], next=following)


@router.post("/{schedule_id}/pause")
async def pause_schedule(conn: Tenant, principal: Writer, schedule_id: UUID) -> Schedule:
    """Pause a schedule: it creates no jobs until it is resumed."""
    del principal
    await schedules.pause(conn, ScheduleId(schedule_id))
    return Schedule.of(await schedules.get(conn, ScheduleId(schedule_id)))


@router.post("/{schedule_id}/resume")
async def resume_schedule(conn: Tenant, principal: Writer, schedule_id: UUID) -> Schedule:
    """Go on at the next tick; those during the pause are not made up for."""
    del principal
    await schedules.resume(conn, ScheduleId(schedule_id), now=datetime.now(UTC))
    return Schedule.of(await schedules.get(conn, ScheduleId(schedule_id)))


@router.post("/{schedule_id}/run", status_code=202)
async def run_schedule(conn: Tenant, principal: Writer, schedule_id: UUID) -> StartedJob:
    """Make a job now, paused or not."""
    del principal
    job_id: JobId = await schedules.run_now(
        conn, ScheduleId(schedule_id), job_templates.create_scheduled_job, now=datetime.now(UTC)
    )
    return StartedJob(job_id=job_id)


def _seconds(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)
