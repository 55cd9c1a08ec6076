"""`/sources`: applications and knowledge sources; uploads, retries, reprocessing."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Form, Query, Request
from starlette.responses import PlainTextResponse, Response

from trapline.api.native.knowledge import applications as application_api
from trapline.api.native.knowledge import sources as api
from trapline.api.native.knowledge import uploads
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import (
    Changing,
    CurrentViewer,
    Editor,
    Reading,
    note_detail,
    record,
)
from trapline.dashboard.views.jobs import wake_workers
from trapline.db.pool import Database
from trapline.errors import TraplineError

router = APIRouter(prefix="/sources")


@router.get("")
async def list_sources(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    application: Annotated[str | None, Query(max_length=300)] = None,
    status: api.Status | None = None,
    kind: api.Kind | None = None,
    cursor: Cursor = None,
) -> Response:
    """List sources."""
    page = await api.list_sources(
        conn, viewer.principal, application, status, kind, cursor=cursor, most=50
    )
    applications = await application_api.list_applications(conn, viewer.principal, most=200)
    return rendering.page(
        request,
        viewer,
        "sources.html",
        page=page,
        applications=applications.items,
        application=application,
        status=status,
        kind=kind,
    )


@router.post("/applications")
async def create_application(
    request: Request,
    conn: Changing,
    viewer: Editor,
    name: Annotated[str, Form(min_length=1, max_length=300)],
) -> Response:
    """Create an application."""
    new = application_api.NewApplication(name=name)
    made = await application_api.create_application(conn, viewer.principal, new)
    note_detail(request, application_id=str(made.id), name=name)
    return rendering.redirect(request, f"/sources?application={made.id}", "It is created.")


@router.post("/upload")
async def upload_files(request: Request, viewer: Editor) -> Response:
    """Take files in, as the API does; a script gets a word, a form goes back to the list."""
    try:
        response = await uploads.upload_documents(request, viewer.principal)
    except TraplineError as error:
        return PlainTextResponse(error.message, error.http_status)
    answer = msgspec.json.decode(bytes(response.body))
    if response.status_code >= 400:  # noqa: PLR2004 (HTTP errors begin there)
        return PlainTextResponse(str(answer.get("detail", "")), response.status_code)
    await _record(request, viewer, answer)
    if "text/plain" in request.headers.get("accept", ""):
        return PlainTextResponse("taken")
    return rendering.redirect(request, "/sources", f"{len(answer['files'])} files are taken in.")


async def _record(request: Request, viewer: Editor, answer: dict[str, object]) -> None:
    note_detail(request, job_id=answer.get("jobId"), files=answer.get("jobCount"))
    database: Database = request.app.state.database
    async with database.tenant_tx(viewer.principal.organisation_id) as conn:
        await record(request, conn, viewer.principal)


@router.get("/{source_id}")
async def show_source(
    request: Request, conn: Reading, viewer: CurrentViewer, source_id: UUID
) -> Response:
    """Show a source, how far it is and how many passages it has."""
    return rendering.page(
        request,
        viewer,
        "source.html",
        source=await api.show_source(conn, viewer.principal, source_id),
        progress=await api.source_progress(conn, viewer.principal, source_id),
    )


@router.post("/{source_id}/{action}")
async def change_source(
    request: Request,
    conn: Changing,
    viewer: Editor,
    source_id: UUID,
    action: Literal["retry", "cancel", "refresh", "reprocess", "delete"],
) -> Response:
    """Retry, cancel, fetch again, cut and embed anew, or delete a source."""
    note_detail(request, action=action)
    principal = viewer.principal
    match action:
        case "retry":
            await api.retry_source(conn, principal, source_id)
        case "cancel":
            await api.cancel_source(conn, principal, source_id)
        case "refresh":
            await api.refresh_source(request, conn, principal, source_id)
        case "reprocess":
            await api.reprocess_source(request, conn, principal, source_id, api.Renewal())
        case "delete":
            await api.delete_source(conn, principal, source_id)
            return rendering.redirect(request, "/sources", "The source is deleted.")
    wake_workers(request)
    return rendering.redirect(request, f"/sources/{source_id}", f"Done: {action}.")
