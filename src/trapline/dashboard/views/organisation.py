"""`/organisation`: limits, usage by day, keys, members, sessions, share links; `/audit-trail`."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from trapline.api.native.admin import audit_trail as audit_api
from trapline.api.native.admin import keys as key_api
from trapline.api.native.admin import members as member_api
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.charts import Column
from trapline.dashboard.viewer import (
    Changing,
    CurrentViewer,
    Owner,
    OwningEditor,
    Reading,
    note_detail,
)
from trapline.db import sessions, tenancy
from trapline.db.connection import Connection
from trapline.db.sql import sessions as session_queries
from trapline.db.sql import usage as ledger
from trapline.model import OrganisationId

router = APIRouter()

_DAYS: Final = 30
_MOST: Final = 200
_Word = Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")]


@router.get("/organisation")
async def show_organisation(request: Request, conn: Reading, viewer: CurrentViewer) -> Response:
    """Show limits and usage; to a key with the scope `admin`, also keys, members and sessions."""
    organisation_id = viewer.principal.organisation_id
    more: dict[str, Any] = {"keys": [], "members": [], "sessions": [], "links": []}
    if viewer.may_administer:
        more = {
            "keys": await key_api.list_keys(conn, viewer.principal),
            "members": await member_api.list_members(conn, viewer.principal),
            "sessions": await session_queries.list_sessions(
                conn, organisation_id=organisation_id, most=_MOST
            ),
            "links": await session_queries.list_share_links(
                conn, organisation_id=organisation_id, most=_MOST
            ),
        }
    return rendering.page(
        request,
        viewer,
        "organisation.html",
        organisation=await tenancy.find_organisation(conn, str(organisation_id)),
        days=await _days(conn, organisation_id),
        **more,
    )


async def _days(conn: Connection, organisation_id: OrganisationId) -> list[Column]:
    today = datetime.now(UTC).date()
    begin = today - timedelta(days=_DAYS - 1)
    rows = await ledger.usage_by_day(conn, organisation_id=organisation_id, since=begin)
    pages = {row.day: row.pages for row in rows}
    days = [begin + timedelta(days=index) for index in range(_DAYS)]
    return [Column(day.isoformat(), (("pages", pages.get(day, 0)),)) for day in days]


@router.post("/organisation/keys")
async def create_key(
    request: Request,
    conn: Changing,
    viewer: OwningEditor,
    name: Annotated[str, Form(min_length=1, max_length=200)],
    scopes: Annotated[list[key_api.Scope], Form(max_length=3)] = ["read"],  # noqa: B006 (FastAPI copies it)
) -> Response:
    """Create a key; its secret is on this page and nowhere else."""
    new = key_api.NewKey(name=name, scopes=scopes)
    issued = await key_api.create_key(conn, viewer.principal, new)
    note_detail(request, key_id=str(issued.id), name=name, scopes=scopes)
    return rendering.page(request, viewer, "new_key.html", key=issued)


@router.post("/organisation/keys/{key_id}/revoke")
async def revoke_key(
    request: Request, conn: Changing, viewer: OwningEditor, key_id: UUID
) -> Response:
    """Revoke a key, with its sessions."""
    await key_api.revoke_key(conn, viewer.principal, str(key_id))
    return rendering.redirect(request, "/organisation", "The key is revoked.")


@router.post("/organisation/members")
async def add_member(
    request: Request,
    conn: Changing,
    viewer: OwningEditor,
    email: Annotated[str, Form(min_length=3, max_length=320)],
    full_name: Annotated[str | None, Form(max_length=200)] = None,
) -> Response:
    """Add a member."""
    new = member_api.NewMember(email=email, full_name=full_name or None)
    await member_api.add_member(conn, viewer.principal, new)
    note_detail(request, email=email)
    return rendering.redirect(request, "/organisation", f"{email} is a member.")


@router.post("/organisation/{what}/{item_id}/remove")
async def remove_item(
    request: Request,
    conn: Changing,
    viewer: OwningEditor,
    what: Literal["members", "sessions", "links"],
    item_id: UUID,
) -> Response:
    """Remove a member, end a session or revoke a share link."""
    note_detail(request, id=str(item_id))
    organisation_id = viewer.principal.organisation_id
    match what:
        case "members":
            await member_api.remove_member(conn, viewer.principal, item_id)
        case "sessions":
            await sessions.revoke(conn, organisation_id, item_id)
        case "links":
            await sessions.revoke_share(conn, organisation_id, item_id)
    return rendering.redirect(request, "/organisation", "It is removed.")


@router.get("/audit-trail")
async def show_audit_trail(
    request: Request,
    conn: Reading,
    viewer: Owner,
    action: _Word = None,
    actor: _Word = None,
    target: _Word = None,
    cursor: Cursor = None,
) -> Response:
    """Show who changed what, newest first."""
    page = await audit_api.list_audit_entries(
        conn, viewer.principal, action, actor, target, cursor, 100
    )
    filters = {"action": action, "actor": actor, "target": target}
    return rendering.page(request, viewer, "audit_trail.html", page=page, **filters)
