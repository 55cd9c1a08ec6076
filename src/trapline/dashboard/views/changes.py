"""`/changes`: the feed of detected changes, and what a change was."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from trapline.api.native.content import changes as api
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import CurrentViewer, Reading
from trapline.pipeline.reports import change_list
from trapline.store.changes import ChangeSource, ChangeStatus

router = APIRouter(prefix="/changes")


@router.get("")
async def list_changes(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    site_id: UUID | None = None,
    job_id: UUID | None = None,
    status: ChangeStatus | None = None,
    source: ChangeSource | None = None,
    sort: change_list.Sort = "newest",
    cursor: Cursor = None,
) -> Response:
    """List changes; lines that a site's config mutes (`ignore_patterns`) make none."""
    filters = api.ChangeFilter(site_id=site_id, job_id=job_id, status=status, source=source)
    page = await api.list_changes(conn, viewer.principal, filters, sort, cursor, 50)
    shown = {"site_id": site_id, "job_id": job_id, "status": status, "source": source, "sort": sort}
    return rendering.page(request, viewer, "changes.html", page=page, **shown)


@router.get("/{change_id}")
async def show_change(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    change_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
    view: Annotated[str | None, Query(max_length=10)] = None,
) -> Response:
    """Go to the diff of a change, or to its page where there is none."""
    change = await api.get_change(conn, viewer.principal, change_id)
    if change.page_id is None:
        return rendering.redirect(request, "/changes", change.summary)
    if change.version is None or change.version == 1:
        return rendering.redirect(request, f"/pages/{change.page_id}")
    return rendering.redirect(
        request, f"/pages/{change.page_id}/diff?old={change.version - 1}&new={change.version}"
    )
