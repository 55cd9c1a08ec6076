"""`/sites`: managed websites: config with history and rollback, schedules, crawls, pause and resume."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response, StreamingResponse

from trapline.api.native.content import sites as api
from trapline.api.native.jobs import exports
from trapline.api.native.jobs import schedules as schedule_api
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import Changing, CurrentViewer, Editor, Reading, note_detail
from trapline.dashboard.views.jobs import wake_workers
from trapline.errors import InvalidInput
from trapline.store import sites

router = APIRouter(prefix="/sites")


@router.get("")
async def list_sites(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    status: api.Status | None = None,
    implicit: bool | None = None,
    name: Annotated[str | None, Query(max_length=300)] = None,
    sort: sites.SiteOrder = "updated",
    cursor: Cursor = None,
) -> Response:
    """List sites."""
    page = await api.list_sites(
        conn, viewer.principal, status, implicit, name, sort=sort, cursor=cursor, most=50
    )
    shown = {"status": status, "implicit": implicit, "name": name, "sort": sort}
    return rendering.page(request, viewer, "sites.html", page=page, **shown)


@router.post("/new")
async def create_site(
    request: Request,
    conn: Changing,
    viewer: Editor,
    name: Annotated[str, Form(min_length=1, max_length=300)],
    base_url: Annotated[str, Form(min_length=1, max_length=16_000)],
) -> Response:
    """Register a site."""
    new = api.NewSite(name=name, base_url=base_url)
    site = await api.create_site(conn, viewer.principal, new)
    note_detail(request, site_id=str(site.id), name=name)
    return rendering.redirect(request, f"/sites/{site.id}", "The site is registered.")


@router.get("/{site_id}")
async def show_site(
    request: Request, conn: Reading, viewer: CurrentViewer, site_id: UUID, cursor: Cursor = None
) -> Response:
    """Show a site: config, history, schedules."""
    principal = viewer.principal
    return rendering.page(
        request,
        viewer,
        "site.html",
        site=await api.get_site(conn, principal, str(site_id)),
        history=await api.list_configs(conn, principal, str(site_id), cursor, 20),
        schedules=await schedule_api.list_schedules(conn, principal, site_id=site_id, most=20),
    )


@router.post("/{site_id}/config")
async def change_config(
    request: Request,
    conn: Changing,
    viewer: Editor,
    site_id: UUID,
    config: Annotated[str, Form(max_length=200_000)],
    note: Annotated[str | None, Form(max_length=1000)] = None,
) -> Response:
    """Replace the config of a site; the one before stays in its history."""
    change = api.SiteChange(config=_config(config), note=note or None)
    await api.change_site(conn, viewer.principal, str(site_id), change)
    return rendering.redirect(request, f"/sites/{site_id}", "The config is stored.")


def _config(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"The config is not a JSON object: {error}") from None


@router.post("/{site_id}/rollback")
async def roll_back_config(
    request: Request,
    conn: Changing,
    viewer: Editor,
    site_id: UUID,
    number: Annotated[int, Form(ge=1, le=2**31 - 1)],
) -> Response:
    """Make an earlier config the present one."""
    note_detail(request, number=number)
    await api.roll_back_config(conn, viewer.principal, str(site_id), api.Rollback(number=number))
    return rendering.redirect(request, f"/sites/{site_id}", f"Config {number} holds again.")


@router.post("/{site_id}/crawl")
async def crawl_site(request: Request, conn: Changing, viewer: Editor, site_id: UUID) -> Response:
    """Crawl a site now."""
    started = await api.crawl_site(conn, viewer.principal, str(site_id), None)
    note_detail(request, job_id=str(started.job_id))
    wake_workers(request)
    return rendering.redirect(request, f"/jobs/{started.job_id}")


@router.get("/{site_id}/export")
async def export_site(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    site_id: UUID,
    format_: Annotated[exports.ExportFormat, Query(alias="format")] = "jsonl",
) -> StreamingResponse:
    """Download the pages of a site."""
    return await api.export_site(request, conn, viewer.principal, str(site_id), format_)


@router.post("/{site_id}/{action}")
async def change_site(
    request: Request,
    conn: Changing,
    viewer: Editor,
    site_id: UUID,
    action: Literal["pause", "resume", "delete"],
) -> Response:
    """Pause, resume or delete a site."""
    note_detail(request, action=action)
    match action:
        case "pause":
            await api.pause_site(conn, viewer.principal, str(site_id))
        case "resume":
            await api.resume_site(conn, viewer.principal, str(site_id))
        case "delete":
            await api.delete_site(conn, viewer.principal, str(site_id))
            return rendering.redirect(request, "/sites", "The site is deleted; its pages stay.")
    return rendering.redirect(request, f"/sites/{site_id}", f"Done: {action}.")
