"""`/dead-letters`: failed tasks that nobody has retried or resolved, one by one or by filter."""

from operator import attrgetter
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from trapline.api import pagination
from trapline.api.pagination import Cursor
from trapline.api.principal import actor_name
from trapline.dashboard import rendering
from trapline.dashboard.viewer import Changing, CurrentViewer, Editor, Reading, note_detail
from trapline.dashboard.views.jobs import wake_workers
from trapline.db.keyset import LAST_NUMBER, LATEST, Moment, Number, Order, Start
from trapline.errors import ExitCode
from trapline.model import JobId, TaskId
from trapline.pipeline.ingest import source_operations
from trapline.queue import dead_letters
from trapline.queue.dead_letters import DeadLetterFilter
from trapline.queue.sql import dead_letters as queries

router = APIRouter(prefix="/dead-letters")

_PAGE: Final = 50
_MOST_COUNTED: Final = 10_000
_NEWEST: Final = Order(
    queries.newest_dead_letters,
    ("at", "before"),
    attrgetter("failed_at", "task_id"),
    Start((LATEST, LAST_NUMBER.key), tuple[Moment, Number]),
)
Kind = Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")]


@router.get("")
async def list_dead_letters(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    job_id: UUID | None = None,
    kind: Kind = None,
    code: ExitCode | None = None,
    cursor: Cursor = None,
) -> Response:
    """List dead letters, newest first."""
    filters: dict[str, Any] = {
        "organisation_id": viewer.principal.organisation_id,
        "job_id": None if job_id is None else JobId(job_id),
        "kind": kind,
        "code": code,
    }
    rows, following = await pagination.read_order(conn, _NEWEST, filters, cursor, _PAGE)
    return rendering.page(
        request,
        viewer,
        "dead_letters.html",
        rows=rows,
        next=following,
        count=await queries.count_dead_letters(conn, most=_MOST_COUNTED, **filters),
        most=_MOST_COUNTED,
        job_id=job_id,
        kind=kind,
        code=code,
        codes=[one for one in ExitCode if one >= ExitCode.DNS_FAILURE],
    )


@router.post("")
async def change_dead_letters(
    request: Request,
    conn: Changing,
    viewer: Editor,
    action: Annotated[Literal["retry", "resolve"], Form()],
    task: Annotated[list[int], Form(max_length=500)] = [],  # noqa: B006 (FastAPI copies it)
    job_id: Annotated[UUID | None, Form()] = None,
    kind: Annotated[str | None, Form(max_length=100)] = None,
    code: Annotated[ExitCode | None, Form()] = None,
) -> Response:
    """Retry or resolve the selected dead letters, or all of a filter."""
    chosen = DeadLetterFilter(
        [TaskId(one) for one in task] or None,
        None if job_id is None else JobId(job_id),
        kind or None,
        code,
    )
    note_detail(request, action=action, tasks=task, job_id=str(job_id), kind=kind, code=code)
    organisation_id, by = viewer.principal.organisation_id, actor_name(viewer.principal)
    if action == "retry":
        job = await source_operations.retry_letters(conn, organisation_id, chosen, by=by)
        wake_workers(request)
        return rendering.redirect(
            request, f"/jobs/{job}", "The dead letters run again in this job."
        )
    count = await dead_letters.resolve(conn, organisation_id, chosen, by=by)
    return rendering.redirect(request, "/dead-letters", f"{count} resolved.")
