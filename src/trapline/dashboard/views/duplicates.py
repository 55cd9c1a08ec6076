"""`/duplicates`: groups of pages with the same content, and people's decisions about them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Form, Path, Query, Request
from starlette.responses import Response

from trapline.api.native.content import duplicates as api
from trapline.api.native.content import sites as site_api
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import Changing, CurrentViewer, Editor, Reading, note_detail
from trapline.pipeline.reports import duplicate_list

router = APIRouter(prefix="/duplicates")


@router.get("")
async def list_groups(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    site: Annotated[str | None, Query(max_length=300)] = None,
    sort: duplicate_list.Sort = "largest",
    cursor: Cursor = None,
) -> Response:
    """List the groups of a site, the largest first."""
    sites = await site_api.list_sites(conn, viewer.principal, sort="updated", most=100)
    chosen = site or (str(sites.items[0].id) if sites.items else None)
    page = None
    if chosen is not None:
        page = await api.list_groups(conn, viewer.principal, chosen, sort, cursor, 50)
    return rendering.page(
        request, viewer, "duplicates.html", sites=sites.items, site=chosen, page=page, sort=sort
    )


@router.get("/{group_id}")
async def show_group(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    group_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
    site: Annotated[str, Query(max_length=300)],
) -> Response:
    """List the pages of a group, the original first."""
    rows = await api.list_duplicates(conn, viewer.principal, group_id, site, most=200)
    return rendering.page(
        request, viewer, "duplicate_group.html", rows=rows, site=site, group_id=group_id
    )


@router.post("/{group_id}/decision")
async def decide_duplicate(
    request: Request,
    conn: Changing,
    viewer: Editor,
    group_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
    site: Annotated[str, Form(max_length=300)],
    page_id: Annotated[UUID, Form()],
    duplicate_of: Annotated[UUID | None, Form()] = None,
    forget: Annotated[bool, Form()] = False,
) -> Response:
    """Say by hand that a page is no duplicate, or whose it is; or forget that decision."""
    note_detail(request, page_id=str(page_id), forget=forget)
    if forget:
        await api.undecide(conn, viewer.principal, page_id)
    else:
        decision = api.Decision(duplicate_of=duplicate_of)
        await api.decide(conn, viewer.principal, page_id, decision)
    return rendering.redirect(request, f"/duplicates?site={site}", "The decision is stored.")
