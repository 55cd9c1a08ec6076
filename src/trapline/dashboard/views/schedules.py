"""`/schedules`: recurrence rules with their next and last runs; pause, resume, run now, add, delete."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from trapline.api.native.jobs import schedules as api
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import Changing, CurrentViewer, Editor, Reading, note_detail
from trapline.dashboard.views.jobs import wake_workers
from trapline.queue.schedule import schedule_list

router = APIRouter(prefix="/schedules")


@router.get("")
async def list_schedules(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    sort: schedule_list.Sort = "newest",
    cursor: Cursor = None,
) -> Response:
    """List schedules."""
    page = await api.list_schedules(conn, viewer.principal, sort=sort, cursor=cursor, most=50)
    return rendering.page(request, viewer, "schedules.html", page=page, sort=sort)


@router.post("/new")
async def add_schedule(
    request: Request,
    conn: Changing,
    viewer: Editor,
    name: Annotated[str, Form(min_length=1, max_length=200)],
    url: Annotated[str, Form(min_length=1, max_length=10_000)],
    cron: Annotated[str, Form(min_length=1, max_length=200)],
    timezone: Annotated[str, Form(max_length=100)] = "UTC",
    limit: Annotated[int, Form(ge=1, le=1_000_000)] = 100,
) -> Response:
    """Add a schedule that crawls a URL."""
    template = {"kind": "crawl", "url": url, "options": {"limit": limit}}
    plan = api.SchedulePlan(name=name, cron=cron, timezone=timezone, template=template)
    schedule = await api.add_schedule(conn, viewer.principal, plan)
    note_detail(request, schedule_id=str(schedule.id), name=name)
    return rendering.redirect(request, f"/schedules/{schedule.id}", "The schedule is added.")


@router.get("/{schedule_id}")
async def show_schedule(
    request: Request, conn: Reading, viewer: CurrentViewer, schedule_id: UUID, cursor: Cursor = None
) -> Response:
    """Show a schedule with its next and last runs."""
    return rendering.page(
        request,
        viewer,
        "schedule.html",
        schedule=await api.get_schedule(conn, viewer.principal, schedule_id),
        runs=await api.list_runs(conn, viewer.principal, schedule_id, cursor),
    )


@router.post("/{schedule_id}/{action}")
async def change_schedule(
    request: Request,
    conn: Changing,
    viewer: Editor,
    schedule_id: UUID,
    action: Literal["pause", "resume", "run", "delete"],
) -> Response:
    """Pause, resume, run now or delete a schedule."""
    note_detail(request, action=action)
    match action:
        case "pause":
            await api.pause_schedule(conn, viewer.principal, schedule_id)
        case "resume":
            await api.resume_schedule(conn, viewer.principal, schedule_id)
        case "delete":
            await api.remove_schedule(conn, viewer.principal, schedule_id)
            return rendering.redirect(request, "/schedules", "The schedule is deleted.")
        case "run":
            started = await api.run_schedule(conn, viewer.principal, schedule_id)
            wake_workers(request)
            return rendering.redirect(request, f"/jobs/{started.job_id}")
    return rendering.redirect(request, f"/schedules/{schedule_id}", f"Done: {action}.")
