"""`/jobs`: the list with bulk actions, a job live, its tasks, errors, log and report, two crawls compared."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response, StreamingResponse

from trapline.api import pagination
from trapline.api.native.jobs import exports, logs
from trapline.api.native.jobs import jobs as api
from trapline.api.native.jobs.jobs import Job
from trapline.api.pagination import Cursor
from trapline.api.services import Services
from trapline.dashboard import rendering
from trapline.dashboard.live import LiveViews, Rendered
from trapline.dashboard.streaming import event_stream
from trapline.dashboard.viewer import (
    Changing,
    CurrentViewer,
    Editor,
    Reading,
    Viewer,
    note_detail,
    record,
)
from trapline.dashboard.views.overview import session_id
from trapline.db.connection import Connection
from trapline.db.keyset import EARLIEST, FIRST_NUMBER, LATEST, Order
from trapline.db.pool import Database
from trapline.db.tenancy import Principal
from trapline.deliver import subscriptions
from trapline.errors import InvalidInput, TraplineError, VisitFailed
from trapline.frontier.canonical_url import typed_url, url_hash
from trapline.model import JobId, OrganisationId
from trapline.pipeline.reports import crawl_report, job_progress
from trapline.pipeline.sql import crawl_report as report_queries
from trapline.pipeline.sql import job_results
from trapline.queue import job_list
from trapline.queue.jobs import ENDED, Status
from trapline.queue.sql import jobs as queries
from trapline.queue.sql import statistics

router = APIRouter(prefix="/jobs")

PAGE: Final = 50
_PAUSE: Final = 5.0
_MOST_BULK: Final = 500
_LOG_LINES: Final = 15
_AMONG: Final = 20_000
_VISITS: Final = Order(report_queries.compare_visits, ("after",), attrgetter("id"), FIRST_NUMBER)

Action = Literal["cancel", "pause", "resume", "retry"]
Kind = Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")]
_BULK_STATES: Final[dict[Action, tuple[Status, ...]]] = {
    "cancel": ("pending", "running", "paused"),
    "pause": ("pending", "running"),
    "resume": ("paused",),
    "retry": ("failed", "completed", "cancelled"),
}


@router.get("")
async def list_jobs(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    status: Status | None = None,
    kind: Kind = None,
    sort: job_list.Sort = "newest",
    cursor: Cursor = None,
    q: Annotated[str | None, Query(max_length=16_000)] = None,
) -> Response:
    """List jobs, or find one by its id or by a URL that it visited."""
    organisation_id = viewer.principal.organisation_id
    if q is not None:
        return await _find(request, conn, viewer, q.strip())
    page = await api.list_jobs(
        conn, viewer.principal, status=status, kind=kind, sort=sort, cursor=cursor, most=PAGE
    )
    counts = await statistics.count_jobs(
        conn, organisation_id=organisation_id, since=EARLIEST, until=LATEST
    )
    return rendering.page(
        request,
        viewer,
        "jobs.html",
        page=page,
        urls=await _urls(conn, page.items),
        counts=counts,
        kinds=sorted({row.kind for row in counts}),
        status=status,
        kind=kind,
        sort=sort,
        q=None,
    )


async def _find(request: Request, conn: Connection, viewer: Viewer, words: str) -> Response:
    try:
        return rendering.redirect(request, f"/jobs/{UUID(words)}")
    except ValueError:
        found = await _jobs_of_url(conn, viewer.principal.organisation_id, words)
    page = pagination.Page[Job](items=found, next=None)
    return rendering.page(
        request,
        viewer,
        "jobs.html",
        page=page,
        urls=await _urls(conn, found),
        counts=[],
        kinds=[],
        status=None,
        kind=None,
        sort="newest",
        q=words,
    )


async def _jobs_of_url(conn: Connection, organisation_id: OrganisationId, words: str) -> list[Job]:
    try:
        digest = url_hash(typed_url(words))
    except VisitFailed as error:
        raise InvalidInput(f"Search jobs by id or by URL: {error.message}") from None
    rows = await job_results.jobs_of_url(
        conn, organisation_id=organisation_id, url_hash=digest, most=PAGE
    )
    jobs = [await queries.get_job(conn, job_id=JobId(row.job_id)) for row in rows]
    return [Job.of(job) for job in jobs if job is not None]


async def _urls(conn: Connection, jobs: list[Job]) -> dict[UUID, str | None]:
    rows = await queries.urls_of_jobs(conn, job_ids=[JobId(job.id) for job in jobs])
    return {row.job_id: row.url for row in rows}


@router.get("/bulk")
async def confirm_bulk(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    action: Action,
    status: Status | None = None,
    kind: Kind = None,
    job: Annotated[list[UUID], Query(max_length=_MOST_BULK)] = [],  # noqa: B006 (FastAPI copies it)
) -> Response:
    """Ask whether a change of many jobs is meant: name the filter and the number."""
    states = _states(action, status)
    count = len(job) if job else await _count(conn, viewer.principal, states, kind)
    return rendering.page(
        request,
        viewer,
        "jobs_bulk.html",
        action=action,
        status=status,
        states=states,
        kind=kind,
        jobs=job,
        count=count,
        most=_MOST_BULK,
    )


def _states(action: Action, status: Status | None) -> tuple[Status, ...]:
    allowed = _BULK_STATES[action]
    if status is None:
        return allowed
    if status not in allowed:
        raise InvalidInput(
            f"A {status} job cannot be changed so: {action} needs {', '.join(allowed)}."
        )
    return (status,)


async def _count(
    conn: Connection, principal: Principal, states: tuple[Status, ...], kind: str | None
) -> int:
    rows = await statistics.count_jobs(
        conn, organisation_id=principal.organisation_id, since=EARLIEST, until=LATEST
    )
    return sum(row.jobs for row in rows if row.status in states and kind in {None, row.kind})


@router.post("/bulk")
async def change_jobs(
    request: Request,
    viewer: Editor,
    action: Annotated[Action, Form()],
    status: Annotated[Status | None, Form()] = None,
    kind: Annotated[str | None, Form(max_length=100)] = None,
    job: Annotated[list[UUID], Form(max_length=_MOST_BULK)] = [],  # noqa: B006 (FastAPI copies it)
) -> Response:
    """Change the selected jobs, or up to 500 of a filter, each in its own transaction."""
    database: Database = request.app.state.database
    principal = viewer.principal
    chosen = list(job)
    async with database.tenant_tx(principal.organisation_id) as conn:
        for state in () if job else _states(action, status):
            rows = await job_list.jobs_of(principal.organisation_id, status=state, kind=kind).read(
                conn, "oldest", most=_MOST_BULK - len(chosen)
            )
            chosen += [row.id for row in rows]
    done = 0
    for job_id in chosen:
        done += await _change_one(request, database, viewer, action, job_id)
    refused = len(chosen) - done
    rest = f" {refused} could not be changed." if refused else ""
    return rendering.redirect(request, "/jobs", f"{action.capitalize()}: {done} jobs.{rest}")


async def _change_one(
    request: Request, database: Database, viewer: Viewer, action: Action, job_id: UUID
) -> bool:
    note_detail(request, job_id=str(job_id), bulk=True)
    try:
        async with database.tenant_tx(viewer.principal.organisation_id) as conn:
            await _act(conn, viewer.principal, action, job_id)
            await record(request, conn, viewer.principal, f"{action}_job")
    except TraplineError:
        return False
    return True


async def _act(conn: Connection, principal: Principal, action: Action, job_id: UUID) -> Job:
    match action:
        case "cancel":
            return await api.cancel_job(conn, principal, job_id)
        case "pause":
            return await api.pause_job(conn, principal, job_id)
        case "resume":
            return await api.resume_job(conn, principal, job_id)
        case "retry":
            return await api.retry_job(conn, principal, job_id)


@router.post("/new")
async def create_job(
    request: Request,
    conn: Changing,
    viewer: Editor,
    url: Annotated[str, Form(max_length=10_000)],
    kind: Annotated[Literal["crawl", "scrape", "map"], Form()] = "crawl",
    limit: Annotated[int, Form(ge=1, le=1_000_000)] = 100,
) -> Response:
    """Start a crawl, a scrape or a map of a URL."""
    options = {"limit": limit} if kind == "crawl" else {}
    new = api.NewJob(kind=kind, url=url.strip(), options=options)
    job = await api.create_job(conn, viewer.principal, new)
    note_detail(request, job_id=str(job.id), url=url[:500])
    wake_workers(request)
    return rendering.redirect(request, f"/jobs/{job.id}")


def wake_workers(request: Request) -> None:
    """Wake the workers of this process; workers elsewhere poll."""
    services: Services | None = request.app.state.services
    if services is not None:
        services.notifier.notify(ready=True)


@router.get("/compare")
async def compare_jobs(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    old: UUID,
    new: UUID,
    only: Literal["all", "missing"] = "all",
    cursor: Cursor = None,
) -> Response:
    """Show two crawls side by side: each URL of the newer one beside the older one, or what it lacks."""
    first, second = (
        await api.get_job(conn, viewer.principal, old),
        await api.get_job(conn, viewer.principal, new),
    )
    of, beside = (second, first) if only == "all" else (first, second)
    filters = {"job_id": JobId(of.id), "other_job_id": JobId(beside.id)}
    rows, following = await pagination.read_order(conn, _VISITS, filters, cursor, PAGE)
    shown = [row for row in rows if only == "all" or row.other_exit_code is None]
    return rendering.page(
        request,
        viewer,
        "jobs_compare.html",
        old=first,
        new=second,
        rows=shown,
        next=following,
        only=only,
        old_ends=await report_queries.recent_exit_codes(conn, job_id=JobId(old), most=_AMONG),
        new_ends=await report_queries.recent_exit_codes(conn, job_id=JobId(new), most=_AMONG),
    )


@router.get("/{job_id}")
async def show_job(
    request: Request, conn: Reading, viewer: CurrentViewer, job_id: UUID
) -> Response:
    """Show a job, live while it runs."""
    job = await api.get_job(conn, viewer.principal, job_id)
    deliveries = await subscriptions.list_deliveries(
        conn, viewer.principal.organisation_id, state=None, job_id=JobId(job_id), most=10
    )
    return rendering.page(
        request,
        viewer,
        "job.html",
        shown=job,
        deliveries=deliveries,
        **await _live_parts(conn, viewer.principal, JobId(job_id)),
    )


async def _live_parts(conn: Connection, principal: Principal, job_id: JobId) -> dict[str, Any]:
    progress = await job_progress.read_progress(conn, job_id, now=datetime.now(UTC))
    lines = await logs.list_logs(conn, principal, job_id=job_id, level="INFO", most=_LOG_LINES)
    rows = await queries.urls_of_jobs(conn, job_ids=[job_id])
    return {
        "live": progress,
        "job": progress.job,
        "url_of_job": rows[0].url if rows else None,
        "lines": lines.items,
        "ended": progress.job.status in ENDED,
    }


@router.get("/{job_id}/live")
async def live_job(request: Request, viewer: CurrentViewer, job_id: UUID) -> StreamingResponse:
    """Stream the live parts of a job."""
    database: Database = request.app.state.database
    principal, prefix = viewer.principal, rendering.prefix_of(request)

    async def render() -> Rendered:
        async with database.tenant_tx(principal.organisation_id) as conn:
            parts = await _live_parts(conn, principal, JobId(job_id))
        return Rendered(rendering.fragment("job_live.html", prefix, **parts), final=parts["ended"])

    views: LiveViews = request.app.state.live_views
    services: Services | None = request.app.state.services

    def signals() -> AsyncIterator[object]:
        assert services is not None  # noqa: S101 (called only where there is one)
        return services.feeds.follow(principal.organisation_id, JobId(job_id))

    return event_stream(
        views.stream(
            ("job", principal.organisation_id, job_id),
            render,
            session=session_id(viewer),
            pause=_PAUSE,
            signals=None if services is None else signals,
        )
    )


@router.get("/{job_id}/tasks")
async def list_tasks(
    request: Request, conn: Reading, viewer: CurrentViewer, job_id: UUID, cursor: Cursor = None
) -> Response:
    """List a job's tasks."""
    job = await api.get_job(conn, viewer.principal, job_id)
    page = await api.list_tasks(conn, viewer.principal, job_id, cursor=cursor, most=PAGE)
    return rendering.page(request, viewer, "job_tasks.html", shown=job, page=page)


@router.get("/{job_id}/errors")
async def list_errors(
    request: Request, conn: Reading, viewer: CurrentViewer, job_id: UUID, cursor: Cursor = None
) -> Response:
    """List a job's tasks that failed for good."""
    job = await api.get_job(conn, viewer.principal, job_id)
    page = await api.list_errors(conn, viewer.principal, job_id, cursor=cursor, most=PAGE)
    return rendering.page(request, viewer, "job_errors.html", shown=job, page=page)


@router.get("/{job_id}/log")
async def show_log(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    job_id: UUID,
    level: logs.LogLevel | None = None,
    cursor: Cursor = None,
) -> Response:
    """Show a job's log, latest lines first."""
    job = await api.get_job(conn, viewer.principal, job_id)
    page = await logs.list_logs(
        conn, viewer.principal, job_id=job_id, level=level, cursor=cursor, most=100
    )
    return rendering.page(request, viewer, "job_log.html", shown=job, page=page, level=level)


@router.get("/{job_id}/report")
async def show_report(
    request: Request, conn: Reading, viewer: CurrentViewer, job_id: UUID
) -> Response:
    """Show the report of a crawl: broken links with their sources, slow and blocked pages."""
    context = await report_of(conn, viewer.principal, job_id)
    return rendering.page(request, viewer, "job_report.html", **context)


async def report_of(conn: Connection, principal: Principal, job_id: UUID) -> dict[str, Any]:
    job = await api.get_job(conn, principal, job_id)
    rows = await queries.urls_of_jobs(conn, job_ids=[JobId(job_id)])
    return {
        "shown": job,
        "url_of_job": rows[0].url if rows else None,
        "broken": await report_queries.failed_pages(conn, job_id=JobId(job_id), status=1, most=100),
        "slow": await report_queries.slow_visits(conn, job_id=JobId(job_id), among=_AMONG, most=20),
        "blocked": await crawl_report.blocked_urls(conn, JobId(job_id), most=100),
        "ends": await report_queries.recent_exit_codes(conn, job_id=JobId(job_id), most=_AMONG),
    }


@router.get("/{job_id}/export")
async def export_job(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    job_id: UUID,
    format_: Annotated[exports.ExportFormat, Query(alias="format")] = "jsonl",
) -> StreamingResponse:
    """Download the pages of a job."""
    return await api.export_job(request, conn, viewer.principal, job_id, format_)


@router.post("/{job_id}/{action}")
async def change_job(
    request: Request, conn: Changing, viewer: Editor, job_id: UUID, action: Action
) -> Response:
    """Cancel, pause, resume or retry a job."""
    note_detail(request, action=action)
    job = await _act(conn, viewer.principal, action, job_id)
    wake_workers(request)
    words = {"cancel": "cancelled", "pause": "paused", "resume": "resumed", "retry": "retried"}
    return rendering.redirect(request, f"/jobs/{job.id}", f"The job is {words[action]}.")
