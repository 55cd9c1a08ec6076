"""`/`: throughput, queue, running jobs, failures, slow hosts, agents, database and disk."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from trapline.dashboard import rendering
from trapline.dashboard.charts import Column
from trapline.dashboard.live import LiveViews, Rendered
from trapline.dashboard.streaming import event_stream
from trapline.dashboard.viewer import CurrentViewer, Reading, Viewer
from trapline.db.connection import Connection
from trapline.db.keyset import EARLIEST, LATEST
from trapline.db.pool import Database
from trapline.db.sql import statistics as server
from trapline.model import OrganisationId
from trapline.pipeline.reports import usage
from trapline.pipeline.sql import hosts as host_queries
from trapline.queue import job_list
from trapline.queue.sql import agents, dead_letters, statistics
from trapline.queue.sql import jobs as job_queries
from trapline.settings import Settings

router = APIRouter()

_PAUSE: Final = 3.0
_ROWS: Final = 8
_MOST_COUNTED: Final = 10_000
_HOURS: Final = 24
_MINUTES: Final = 60


@router.get("/")
async def overview(request: Request, conn: Reading, viewer: CurrentViewer) -> Response:
    """Show what goes on."""
    figures = await _figures(conn, viewer.principal.organisation_id, request.app.state.settings)
    return rendering.page(request, viewer, "overview.html", **figures)


@router.get("/live")
async def live_overview(request: Request, viewer: CurrentViewer) -> StreamingResponse:
    """Stream the overview."""
    database: Database = request.app.state.database
    settings: Settings = request.app.state.settings
    organisation_id, prefix = viewer.principal.organisation_id, rendering.prefix_of(request)

    async def render() -> Rendered:
        async with database.tenant_tx(organisation_id) as conn:
            figures = await _figures(conn, organisation_id, settings)
        return Rendered(rendering.fragment("overview_live.html", prefix, **figures))

    views: LiveViews = request.app.state.live_views
    key = ("overview", organisation_id)
    return event_stream(views.stream(key, render, session=session_id(viewer), pause=_PAUSE))


def session_id(viewer: Viewer) -> Any:
    return None if viewer.session is None else viewer.session.id


async def _figures(
    conn: Connection, organisation_id: OrganisationId, settings: Settings
) -> dict[str, Any]:
    now = datetime.now(UTC)
    counts = await statistics.count_jobs(
        conn, organisation_id=organisation_id, since=EARLIEST, until=LATEST
    )
    running = await job_list.jobs_of(organisation_id, status="running").read(
        conn, "newest", most=_ROWS
    )
    urls = await job_queries.urls_of_jobs(conn, job_ids=[job.id for job in running])
    size = await server.database_size(conn)
    return {
        "now": now,
        "load": await usage.current_load(conn, organisation_id),
        "today": await usage.today(conn, organisation_id),
        "by_status": _by_status(counts),
        "running": running,
        "urls": {row.job_id: row.url for row in urls},
        "letters": await _letters(conn, organisation_id),
        "letter_count": await dead_letters.count_dead_letters(
            conn,
            organisation_id=organisation_id,
            job_id=None,
            kind=None,
            code=None,
            most=_MOST_COUNTED,
        ),
        "hosts": await host_queries.busy_hosts(conn, organisation_id=organisation_id, most=_ROWS),
        "agents": [a for a in await agents.list_agents(conn, most=20) if a.finished_at is None],
        "database": size,
        "disk": await asyncio.to_thread(shutil.disk_usage, _existing(settings)),
        "hours": await _hours(conn, organisation_id, now),
        "minutes": await _minutes(conn, now),
    }


def _existing(settings: Settings) -> str:
    home = settings.database.home
    return str(next(path for path in (home, *home.parents) if path.exists()))


def _by_status(counts: list[Any]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for row in counts:
        totals[row.status] = totals.get(row.status, 0) + row.jobs
    return totals


async def _letters(conn: Connection, organisation_id: OrganisationId) -> list[Any]:
    rows = await dead_letters.newest_dead_letters(
        conn,
        organisation_id=organisation_id,
        at=LATEST,
        before=2**63 - 1,
        job_id=None,
        kind=None,
        code=None,
        most=_ROWS,
    )
    return list(rows)


async def _hours(conn: Connection, organisation_id: OrganisationId, now: datetime) -> list[Column]:
    begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    rows = await statistics.jobs_by_hour(
        conn, organisation_id=organisation_id, since=begin, until=LATEST
    )
    found = {row.hour: row for row in rows}
    columns = []
    for index in range(_HOURS):
        hour = begin + timedelta(hours=index)
        row = found.get(hour)
        done, failed = (row.completed, row.failed) if row else (0, 0)
        other = row.created - done - failed if row else 0
        amounts = (("completed", done), ("failed", failed), ("open", other))
        columns.append(Column(hour.strftime("%H:%M UTC"), amounts))
    return columns


async def _minutes(conn: Connection, now: datetime) -> list[Column]:
    begin = now.replace(second=0, microsecond=0) - timedelta(minutes=_MINUTES - 1)
    found = {row.minute: row for row in await statistics.throughput_since(conn, since=begin)}
    columns = []
    for index in range(_MINUTES):
        minute = begin + timedelta(minutes=index)
        row = found.get(minute)
        done, failed, skipped = (row.completed, row.failed, row.skipped) if row else (0, 0, 0)
        amounts = (("completed", done), ("failed", failed), ("skipped", skipped))
        columns.append(Column(minute.strftime("%H:%M UTC"), amounts))
    return columns
