"""`/share`: links to one report that expire, can be revoked, and need no sign-in."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from fastapi import APIRouter, Form, Path, Request
from starlette.responses import Response

from trapline.dashboard import rendering
from trapline.dashboard.viewer import Changing, Editor, note_detail
from trapline.dashboard.views.jobs import report_of
from trapline.dashboard.views.pages import diff_of
from trapline.db import sessions
from trapline.db.pool import Database
from trapline.db.tenancy import Principal
from trapline.errors import InvalidInput

router = APIRouter(prefix="/share")

_READ: Final = frozenset({"read"})


@router.post("")
async def create_share_link(
    request: Request,
    conn: Changing,
    viewer: Editor,
    path: Annotated[str, Form(max_length=500)],
    title: Annotated[str, Form(min_length=1, max_length=300)],
    days: Annotated[int, Form(ge=1, le=365)] = 7,
) -> Response:
    """Create a link to a report or a diff; its token is on this page and nowhere else."""
    _parsed(path)
    link = await sessions.share(
        conn,
        viewer.principal.organisation_id,
        path,
        title=title,
        by=viewer.name,
        lifetime=timedelta(days=days),
        now=datetime.now(UTC),
    )
    note_detail(request, link_id=str(link.id), path=path, days=days)
    origin = str(request.base_url).rstrip("/")
    shared = f"{origin}{rendering.prefix_of(request)}/share/{link.token}"
    return rendering.page(request, viewer, "new_link.html", shared=shared, title=title, days=days)


@router.get("/{token}")
async def show_shared(request: Request, token: Annotated[str, Path(max_length=100)]) -> Response:
    """Show what a link leads to, and nothing else."""
    database: Database = request.app.state.database
    link = await database.run_statement(lambda conn: sessions.find_shared(conn, token))
    view, item_id, numbers = _parsed(link.path)
    reader = Principal(link.organisation_id, None, _READ)
    async with database.tenant_tx(link.organisation_id) as conn:
        if view == "report":
            context = await report_of(conn, reader, item_id)
            return rendering.page(request, None, "job_report.html", **context)
        context = await diff_of(conn, reader, item_id, *numbers)
    return rendering.page(request, None, "page_diff.html", **context, view="side", versions=[])


def _parsed(path: str) -> tuple[str, UUID, tuple[int | None, int | None]]:
    """Return what may be shared: the report of a job, or the diff of two versions of a page."""
    parts = urlsplit(path)
    numbers = parse_qs(parts.query)
    try:
        match parts.path.split("/"):
            case ["", "jobs", item, "report"]:
                return "report", UUID(item), (None, None)
            case ["", "pages", item, "diff"]:
                old, new = (int(numbers[name][0]) for name in ("old", "new"))
                return "diff", UUID(item), (old, new)
            case _:
                pass
    except (ValueError, KeyError):
        pass
    raise InvalidInput("Only the report of a job and the diff of a page can be shared.")
