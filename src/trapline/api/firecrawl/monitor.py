"""/v2/monitor: schedules that watch pages, and what each of their looks found."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from trapline.api.access import Reader, Tenant, Writer, name_of
from trapline.api.engine import CurrentEngine
from trapline.api.firecrawl import statuses
from trapline.api.firecrawl.answers import Done, responses
from trapline.api.firecrawl.documents import moment
from trapline.api.firecrawl.monitor_request import LABEL, MonitorBody, MonitorChange, template_of
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal, answer
from trapline.db.connection import Connection
from trapline.errors import NotFound
from trapline.frontier.url import typed_url
from trapline.model import JobId, ScheduleId
from trapline.pipeline import monitoring, templates
from trapline.pipeline.monitoring import Place, Summary, WatchedPage
from trapline.queue import jobs, schedules
from trapline.queue.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.jobs import JobRow
from trapline.queue.sql.schedules import ScheduleRow, ScheduleRunRow

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

_WORDS: Final = {"pending": "queued", "running": "running", "paused": "running"}
_SKIPPED: Final = {"overlapped": "skipped_overlap", "missed": "failed", "failed": "failed"}
_SETTLED: Final = timedelta(minutes=10)
_FORGOTTEN: Final = "Its pages are no longer kept."
_LARGEST: Final = 2**63 - 1

Limit = Annotated[int, Query(ge=1, le=100)]
Offset = Annotated[int, Query(ge=0, le=2**53)]
PageStatus = Literal["same", "new", "changed", "removed", "error"]


async def _monitor_id(monitor_id: str) -> ScheduleId:
    try:
        return ScheduleId(UUID(monitor_id))
    except ValueError:
        raise Refusal(400, "Invalid monitor ID") from None


async def _check_id(check_id: str) -> int:
    if not (check_id.isascii() and check_id.isdigit()) or int(check_id[:20]) > _LARGEST:
        raise Refusal(404, "Monitor check not found")
    return int(check_id[:20])


MonitorReference = Annotated[ScheduleId, Depends(_monitor_id)]
CheckReference = Annotated[int, Depends(_check_id)]


@router.post("/v2/monitor", response_model=Done)
async def create(body: MonitorBody, who: Writer, conn: Tenant) -> Response:
    """Start to watch."""
    plan = body.plan()
    templates.read(plan.template)
    now = datetime.now(UTC)
    row = await schedules.add(conn, who.organisation_id, plan, now=now, by=name_of(who))
    return answer(200, success=True, data=await _monitor(conn, row))


@router.get("/v2/monitor", response_model=Done)
async def listed(who: Reader, conn: Tenant, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List the monitors, newest first."""
    rows = await queries.labelled_schedules(
        conn, organisation_id=who.organisation_id, label=LABEL, skip=offset, most=limit
    )
    return answer(200, success=True, data=[await _monitor(conn, row) for row in rows])


@router.get("/v2/monitor/{monitor_id}", response_model=Done)
async def get(monitor_id: MonitorReference, who: Reader, conn: Tenant) -> Response:
    """Show a monitor."""
    del who
    return answer(200, success=True, data=await _monitor(conn, await _found(conn, monitor_id)))


@router.patch("/v2/monitor/{monitor_id}", response_model=Done)
async def update(
    monitor_id: MonitorReference, body: MonitorChange, who: Writer, conn: Tenant
) -> Response:
    """Change what is given; the rest stays."""
    del who
    body.refuse()
    row, now = await _found(conn, monitor_id), datetime.now(UTC)
    plan = _changed(row, body)
    templates.read(plan.template)
    await schedules.change(conn, row.id, plan, now=now)
    if body.status == "paused" and row.paused_at is None:
        await schedules.pause(conn, row.id)
    elif body.status == "active" and row.paused_at is not None:
        await schedules.resume(conn, row.id, now=now)
    return answer(200, success=True, data=await _monitor(conn, await _found(conn, row.id)))


def _changed(row: ScheduleRow, body: MonitorChange) -> Plan:
    days = body.retention_days or int(row.template["keep_days"])
    template = dict(row.template) | {"keep_days": days}
    return Plan(
        body.name or row.name,
        schedules.rule_of(row) if body.schedule is None else body.schedule.rule(),
        template if body.targets is None else template_of(body.targets, days),
        importance=row.importance,
        overlap=row.overlap,
        catch_up=row.catch_up,
    )


@router.delete("/v2/monitor/{monitor_id}", response_model=Done)
async def delete(monitor_id: MonitorReference, who: Writer, conn: Tenant) -> Response:
    """Watch no more; a look that goes on is finished."""
    del who
    await schedules.remove(conn, (await _found(conn, monitor_id)).id)
    return answer(200, success=True)


@router.post("/v2/monitor/{monitor_id}/run", response_model=Done)
async def run(monitor_id: MonitorReference, who: Writer, parts: CurrentEngine) -> Response:
    """Look now; 409 while the last look goes on."""
    async with parts.results.database.tenant_tx(who.organisation_id) as conn:
        row = await _found(conn, monitor_id)
        await schedules.run_now(conn, row.id, templates.create, now=datetime.now(UTC))
        # The row of the schedule is locked: the latest run is the one that was just made.
        checks = await _checks(conn, await schedules.runs(conn, row.id, most=1))
    parts.bell.ring(ready=True)
    return answer(200, success=True, data=checks[0])


@router.get("/v2/monitor/{monitor_id}/checks", response_model=Done)
async def checks(
    monitor_id: MonitorReference, who: Reader, conn: Tenant, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """List what became of each look, latest first."""
    del who
    row = await _found(conn, monitor_id)
    runs = await schedules.runs(conn, row.id, skip=offset, most=limit)
    return answer(200, success=True, data=await _checks(conn, runs))


@router.get("/v2/monitor/{monitor_id}/checks/{check_id}", response_model=Done)
async def check(
    request: Request,
    monitor_id: MonitorReference,
    check_id: CheckReference,
    who: Reader,
    conn: Tenant,
    limit: Limit = 100,
    skip: Offset = 0,
    after: Annotated[str | None, Query(pattern=r"^[01]-[0-9]{1,18}$")] = None,
    status: PageStatus | None = None,
) -> Response:
    """Show one look with its pages, and what changed in them."""
    del who
    row = await _found(conn, monitor_id)
    taken = await queries.get_run(conn, schedule_id=row.id, run_id=check_id)
    if taken is None:
        raise Refusal(404, "Monitor check not found")
    body = (await _checks(conn, [taken]))[0]
    found: list[WatchedPage] = []
    if taken.job_id is not None:
        found = await monitoring.pages(
            conn,
            taken.job_id,
            status=status,
            after=_place(after),
            # A place says where to go on; the number is for clients that count by themselves.
            skip=skip if after is None else 0,
            most=limit + 1,
        )
    targets = _targets(row)
    body["pages"] = [_page(page, targets) for page in found[:limit]]
    following = None
    if len(found) > limit:
        wanted = "" if status is None else f"&status={status}"
        here = f"{statuses.base(request)}{request.url.path}"
        place = found[limit - 1].place
        cursor = f"&after={int(place.missed)}-{place.after}"
        following = f"{here}?skip={skip + limit}&limit={limit}{wanted}{cursor}"
    return answer(200, success=True, data=body, next=following)


def _place(after: str | None) -> Place | None:
    if after is None:
        return None
    missed, _, number = after.partition("-")
    return Place(missed == "1", int(number))


async def _found(conn: Connection, monitor_id: ScheduleId) -> ScheduleRow:
    try:
        row = await schedules.get(conn, monitor_id)
    except NotFound:
        raise Refusal(404, "Monitor not found") from None
    if LABEL not in row.template.get("labels", {}):
        raise Refusal(404, "Monitor not found")
    return row


async def _monitor(conn: Connection, row: ScheduleRow) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": str(row.id),
        "name": row.name,
        "status": "active" if row.paused_at is None else "paused",
        "schedule": {"cron": row.cron, "timezone": row.timezone},
        "targets": row.template["labels"][LABEL]["targets"],
        "retentionDays": row.template["keep_days"],
        "createdAt": moment(row.created_at),
        "updatedAt": moment(row.updated_at),
    }
    if row.next_at is not None:
        body["nextRunAt"] = moment(row.next_at)
    runs = await schedules.runs(conn, row.id, most=1)
    if runs:
        last = (await _checks(conn, runs))[0]
        body |= {"lastRunAt": last["createdAt"], "lastCheckSummary": last["summary"]}
        if last["status"] in {"queued", "running"}:
            body["currentCheckId"] = last["id"]
    return body


async def _checks(conn: Connection, runs: Sequence[ScheduleRunRow]) -> list[dict[str, Any]]:
    # Jobs first: what is counted of one that has ended is then all of it.
    found = [await _job(conn, taken.job_id) for taken in runs]
    made = [taken.job_id for taken in runs if taken.job_id is not None and taken.summary is None]
    counted = await monitoring.summaries(conn, made) if made else {}
    return [
        _check(taken, job, await _summary(conn, taken, job, counted))
        for taken, job in zip(runs, found, strict=True)
    ]


async def _summary(
    conn: Connection,
    taken: ScheduleRunRow,
    job: JobRow | None,
    counted: Mapping[JobId, Summary],
) -> Summary:
    """Return what a look came to; what does not change any more is counted once."""
    if taken.summary is not None:
        return msgspec.convert(taken.summary, Summary)
    found = Summary() if taken.job_id is None else counted.get(taken.job_id, Summary())
    # Until then a crawl's missing pages may still be found missing.
    ended = None if job is None else job.finished_at
    if ended is not None and ended + _SETTLED < datetime.now(UTC):
        await queries.keep_summary(conn, run_id=taken.id, summary=msgspec.to_builtins(found))
    return found


async def _job(conn: Connection, job_id: JobId | None) -> JobRow | None:
    try:
        return None if job_id is None else await jobs.get(conn, job_id)
    except NotFound:
        return None


def _check(taken: ScheduleRunRow, job: JobRow | None, found: Summary) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": str(taken.id),
        "monitorId": str(taken.schedule_id),
        "status": _status(taken, job, found),
        "trigger": "manual" if taken.manual else "scheduled",
        "scheduledFor": moment(taken.tick),
        "billingStatus": "not_applicable",
        "actualCredits": found.total,
        "summary": {
            "totalPages": found.total,
            "same": found.same,
            "changed": found.changed,
            "new": found.new,
            "removed": found.removed,
            "error": found.error,
        },
        "createdAt": moment(taken.created_at),
        "updatedAt": moment(taken.created_at),
    }
    if taken.detail is not None:
        body["error"] = taken.detail
    elif job is None:
        body["error"] = _FORGOTTEN
    else:
        times = {"startedAt": job.started_at, "finishedAt": job.finished_at}
        body |= {name: moment(at) for name, at in times.items() if at is not None}
        body["updatedAt"] = moment(job.finished_at or job.started_at or taken.created_at)
    return body


def _status(taken: ScheduleRunRow, job: JobRow | None, found: Summary) -> str:
    if taken.outcome != "created":
        return _SKIPPED[taken.outcome]
    if job is None:
        return "completed"
    if job.status in _WORDS:
        return _WORDS[job.status]
    whole = found.same + found.changed + found.new + found.removed
    # A look that finds every page removed has done what it should, whatever its job is called.
    if job.status == "cancelled" or not whole:
        return "failed"
    return "partial" if found.error else "completed"


def _targets(row: ScheduleRow) -> dict[str, str]:
    """Return which target a URL belongs to; the first one has those that no target names."""
    told = row.template["labels"][LABEL]["targets"]
    named = {
        typed_url(url): target["id"]
        for target in reversed(told)
        for url in target.get("urls") or [target["url"]]
    }
    return {"": told[0]["id"]} | named


def _page(page: WatchedPage, targets: Mapping[str, str]) -> dict[str, Any]:
    row = page.row
    body: dict[str, Any] = {
        "id": row.id,
        "targetId": targets.get(row.url, targets[""]),
        "url": row.url,
        "status": row.status,
        "createdAt": moment(row.at),
    }
    if row.status_code is not None:
        body["statusCode"] = row.status_code
    if row.error is not None:
        body["error"] = row.error
    return body if page.diff is None else body | {"diff": page.diff.as_json()}
