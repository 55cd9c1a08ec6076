"""`/tasks/{id}`: the timeline of a task, its attempts, and the provenance of what it fetched."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from trapline.dashboard import rendering
from trapline.dashboard.charts import Phase
from trapline.dashboard.viewer import CurrentViewer, Reading
from trapline.db.connection import Connection
from trapline.model import TaskId
from trapline.pipeline.sql import provenance
from trapline.pipeline.sql.provenance import RequestsOfVisitRow, VisitsOfTaskRow
from trapline.queue import tasks, why

router = APIRouter(prefix="/tasks")

_MOST_VISITS: Final = 20


@router.get("/{task_id}")
async def show_task(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    task_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
) -> Response:
    """Show a task: where it is, what it waits for, and each visit with its requests."""
    task = await tasks.get(conn, TaskId(task_id))
    visits = await provenance.visits_of_task(
        conn,
        job_id=task.job_id,
        task_id=TaskId(task_id),
        since=task.created_at - timedelta(days=1),
        most=_MOST_VISITS,
    )
    return rendering.page(
        request,
        viewer,
        "task.html",
        task=task,
        why=await why.why(conn, TaskId(task_id), now=datetime.now(UTC)),
        visits=[await _visit(conn, visit) for visit in visits],
    )


async def _visit(conn: Connection, visit: VisitsOfTaskRow) -> dict[str, Any]:
    key: dict[str, Any] = {"visit_id": visit.id, "started_at": visit.started_at}
    requests = await provenance.requests_of_visit(conn, **key)
    return {
        "visit": visit,
        "requests": [(row, phases_of(row, visit)) for row in requests],
        "redirects": await provenance.redirects_of_visit(conn, **key),
        "file": await provenance.headers_of_visit(conn, **key),
    }


def phases_of(row: RequestsOfVisitRow, visit: VisitsOfTaskRow) -> list[Phase]:
    """Return the phases of a request in the time of its visit; what was reused took no time."""
    at = max((row.sent_at - visit.started_at).total_seconds() * 1000, 0.0)
    phases = []
    for name, length in (("dns", row.dns_ms), ("connect", row.connect_ms), ("tls", row.tls_ms)):
        if length:
            phases.append(Phase(name, at, length))
            at += length
    begun = sum(phase.length for phase in phases)
    if row.first_byte_ms is not None:
        waited = max(row.first_byte_ms - begun, 0.0)
        phases.append(Phase("wait", at, waited))
        at += waited
        if row.total_ms is not None:
            phases.append(Phase("body", at, max(row.total_ms - row.first_byte_ms, 0.0)))
    elif row.total_ms is not None:
        phases.append(Phase("wait", at, max(row.total_ms - begun, 0.0)))
    return phases
