"""/v2/monitor: schedules that watch pages, and the results of their checks."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import job_status
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.requests.monitor_request import (
    LABEL,
    MonitorBody,
    MonitorChange,
    template_of,
)
from trapline.api.firecrawl.response_models import Done, responses
from trapline.api.principal import Reader, Tenant, Writer, actor_name
from trapline.db.connection import Connection
from trapline.deliver.firecrawl_document import iso_time
from trapline.errors import NotFound
from trapline.frontier.canonical_url import typed_url
from trapline.model import JobId, ScheduleId
from trapline.pipeline import job_templates
from trapline.pipeline.sites import monitor_checks
from trapline.pipeline.sites.monitor_checks import CheckedPage, CheckSummary, Position
from trapline.queue import jobs
from trapline.queue.schedule import schedules
from trapline.queue.schedule.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.jobs import JobRow
from trapline.queue.sql.schedules import ScheduleRow, ScheduleRunRow

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

_STATUSES: Final = {"pending": "queued", "running": "running", "paused": "running"}
_SKIPPED: Final = {"overlapped": "skipped_overlap", "missed": "failed", "failed": "failed"}
_SETTLED: Final = timedelta(minutes=10)
_EXPIRED: Final = "Its pages are no longer kept."
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
async def create(body: MonitorBody, principal: Writer, conn: Tenant) -> Response:
    """Create a monitor."""
    plan = body.plan()
    job_templates.parse(plan.template)
    now = datetime.now(UTC)
    row = await schedules.add(
        conn, principal.organisation_id, plan, now=now, by=actor_name(principal)
    )
    return answer(200, success=True, data=await _monitor(conn, row))


@router.get("/v2/monitor", response_model=Done)
async def listed(
    principal: Reader, conn: Tenant, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """List the monitors, newest first."""
    rows = await queries.labelled_schedules(
        conn, organisation_id=principal.organisation_id, label=LABEL, skip=offset, most=limit
    )
    return answer(200, success=True, data=[await _monitor(conn, row) for row in rows])


@router.get("/v2/monitor/{monitor_id}", response_model=Done)
async def get(monitor_id: MonitorReference, principal: Reader, conn: Tenant) -> Response:
    """Show a monitor."""
    del principal
    return answer(
        200, success=True, data=await _monitor(conn, await _find_monitor(conn, monitor_id))
    )


@router.patch("/v2/monitor/{monitor_id}", response_model=Done)
async def update(
    monitor_id: MonitorReference, body: MonitorChange, principal: Writer, conn: Tenant
) -> Response:
    """Change what is given; the rest stays."""
    del principal
    body.refuse()
    row, now = await _find_monitor(conn, monitor_id), datetime.now(UTC)
    plan = _changed(row, body)
    job_templates.parse(plan.template)
    await schedules.change(conn, row.id, plan, now=now)
    if body.status == "paused" and row.paused_at is None:
        await schedules.pause(conn, row.id)
    elif body.status == "active" and row.paused_at is not None:
        await schedules.resume(conn, row.id, now=now)
    return answer(200, success=True, data=await _monitor(conn, await _find_monitor(conn, row.id)))


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
async def delete(monitor_id: MonitorReference, principal: Writer, conn: Tenant) -> Response:
    """Delete a monitor; a check in progress is finished."""
    del principal
    await schedules.remove(conn, (await _find_monitor(conn, monitor_id)).id)
    return answer(200, success=True)


@router.post("/v2/monitor/{monitor_id}/run", response_model=Done)
async def run(
    monitor_id: MonitorReference, principal: Writer, services: CurrentServices
) -> Response:
    """Run a check now; 409 while the last one runs."""
    async with services.results.database.tenant_tx(principal.organisation_id) as conn:
        row = await _find_monitor(conn, monitor_id)
        await schedules.run_now(
            conn, row.id, job_templates.create_scheduled_job, now=datetime.now(UTC)
        )
        # The row of the schedule is locked: the latest run is the one just created.
        checks = await _checks(conn, await schedules.runs(conn, row.id, most=1))
    services.notifier.notify(ready=True)
    return answer(200, success=True, data=checks[0])


@router.get("/v2/monitor/{monitor_id}/checks", response_model=Done)
async def checks(
    monitor_id: MonitorReference,
    principal: Reader,
    conn: Tenant,
    limit: Limit = 50,
    offset: Offset = 0,
) -> Response:
    """List the checks, latest first."""
    del principal
    row = await _find_monitor(conn, monitor_id)
    runs = await schedules.runs(conn, row.id, skip=offset, most=limit)
    return answer(200, success=True, data=await _checks(conn, runs))


@router.get("/v2/monitor/{monitor_id}/checks/{check_id}", response_model=Done)
async def check(
    request: Request,
    monitor_id: MonitorReference,
    check_id: CheckReference,
    principal: Reader,
    conn: Tenant,
    limit: Limit = 100,
    skip: Offset = 0,
    after: Annotated[str | None, Query(pattern=r"^[01]-[0-9]{1,18}$")] = None,
    status: PageStatus | None = None,
) -> Response:
    """Show one check with its pages and their changes."""
    del principal
    row = await _find_monitor(conn, monitor_id)
    run = await queries.get_run(conn, schedule_id=row.id, run_id=check_id)
    if run is None:
        raise Refusal(404, "Monitor check not found")
    body = (await _checks(conn, [run]))[0]
    pages: list[CheckedPage] = []
    if run.job_id is not None:
        pages = await monitor_checks.pages(
            conn,
            run.job_id,
            status=status,
            after=_position(after),
            # The position says where to continue; `skip` is for clients that count themselves.
            skip=skip if after is None else 0,
            most=limit + 1,
        )
    targets = _targets(row)
    body["pages"] = [_page(page, targets) for page in pages[:limit]]
    following = None
    if len(pages) > limit:
        filtered = "" if status is None else f"&status={status}"
        here = f"{job_status.base(request)}{request.url.path}"
        position = pages[limit - 1].position
        cursor = f"&after={int(position.missed)}-{position.after}"
        following = f"{here}?skip={skip + limit}&limit={limit}{filtered}{cursor}"
    return answer(200, success=True, data=body, next=following)


def _position(after: str | None) -> Position | None:
    if after is None:
        return None
    missed, _, number = after.partition("-")
    return Position(missed == "1", int(number))


async def _find_monitor(conn: Connection, monitor_id: ScheduleId) -> ScheduleRow:
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
        "createdAt": iso_time(row.created_at),
        "updatedAt": iso_time(row.updated_at),
    }
    if row.next_at is not None:
        body["nextRunAt"] = iso_time(row.next_at)
    runs = await schedules.runs(conn, row.id, most=1)
    if runs:
        last = (await _checks(conn, runs))[0]
        body |= {"lastRunAt": last["createdAt"], "lastCheckSummary": last["summary"]}
        if last["status"] in {"queued", "running"}:
            body["currentCheckId"] = last["id"]
    return body


async def _checks(conn: Connection, runs: Sequence[ScheduleRunRow]) -> list[dict[str, Any]]:
    # Jobs first: the counts of a job that has ended are then complete.
    rows = [await _job(conn, run.job_id) for run in runs]
    uncounted = [run.job_id for run in runs if run.job_id is not None and run.summary is None]
    summaries = await monitor_checks.summaries(conn, uncounted) if uncounted else {}
    return [
        _check(run, job, await _summary(conn, run, job, summaries))
        for run, job in zip(runs, rows, strict=True)
    ]


async def _summary(
    conn: Connection,
    run: ScheduleRunRow,
    job: JobRow | None,
    summaries: Mapping[JobId, CheckSummary],
) -> CheckSummary:
    """Return the summary of a check; one that has ended is counted once and stored."""
    if run.summary is not None:
        return msgspec.convert(run.summary, CheckSummary)
    summary = CheckSummary() if run.job_id is None else summaries.get(run.job_id, CheckSummary())
    # Until then a crawl's missing pages may still be found missing.
    ended = None if job is None else job.finished_at
    if ended is not None and ended + _SETTLED < datetime.now(UTC):
        await queries.store_run_summary(conn, run_id=run.id, summary=msgspec.to_builtins(summary))
    return summary


async def _job(conn: Connection, job_id: JobId | None) -> JobRow | None:
    try:
        return None if job_id is None else await jobs.get(conn, job_id)
    except NotFound:
        return None


def _check(run: ScheduleRunRow, job: JobRow | None, summary: CheckSummary) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": str(run.id),
        "monitorId": str(run.schedule_id),
        "status": _status(run, job, summary),
        "trigger": "manual" if run.manual else "scheduled",
        "scheduledFor": iso_time(run.tick),
        "billingStatus": "not_applicable",
        "actualCredits": summary.total,
        "summary": {
            "totalPages": summary.total,
            "same": summary.same,
            "changed": summary.changed,
            "new": summary.new,
            "removed": summary.removed,
            "error": summary.error,
        },
        "createdAt": iso_time(run.created_at),
        "updatedAt": iso_time(run.created_at),
    }
    if run.detail is not None:
        body["error"] = run.detail
    elif job is None:
        body["error"] = _EXPIRED
    else:
        times = {"startedAt": job.started_at, "finishedAt": job.finished_at}
        body |= {name: iso_time(at) for name, at in times.items() if at is not None}
        body["updatedAt"] = iso_time(job.finished_at or job.started_at or run.created_at)
    return body


def _status(run: ScheduleRunRow, job: JobRow | None, summary: CheckSummary) -> str:
    if run.outcome != "created":
        return _SKIPPED[run.outcome]
    if job is None:
        return "completed"
    if job.status in _STATUSES:
        return _STATUSES[job.status]
    whole = summary.same + summary.changed + summary.new + summary.removed
    # A check that finds every page removed has succeeded, whatever the status of its job.
    if job.status == "cancelled" or not whole:
        return "failed"
    return "partial" if summary.error else "completed"


def _targets(row: ScheduleRow) -> dict[str, str]:
    """Return the target that each URL belongs to; the first has those that no target names."""
    targets = row.template["labels"][LABEL]["targets"]
    named = {
        typed_url(url): target["id"]
        for target in reversed(targets)
        for url in target.get("urls") or [target["url"]]
    }
    return {"": targets[0]["id"]} | named


def _page(page: CheckedPage, targets: Mapping[str, str]) -> dict[str, Any]:
    row = page.row
    body: dict[str, Any] = {
        "id": row.id,
        "targetId": targets.get(row.url, targets[""]),
        "url": row.url,
        "status": row.status,
        "createdAt": iso_time(row.at),
    }
    if row.status_code is not None:
        body["statusCode"] = row.status_code
    if row.error is not None:
        body["error"] = row.error
    return body if page.diff is None else body | {"diff": page.diff.as_json()}
