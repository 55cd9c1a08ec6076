"""`/sign-in`, `/sign-out`: an API key in exchange for a session cookie."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from trapline.dashboard import rendering
from trapline.dashboard.session_cookie import clear_cookie, set_cookie
from trapline.dashboard.viewer import (
    Changing,
    CurrentViewer,
    find_viewer,
    require_same_origin,
    sign_in,
)
from trapline.db import sessions
from trapline.errors import TraplineError

router = APIRouter()

Next = Annotated[str, Query(alias="next", max_length=2000)]


def local_path(path: str) -> str:
    """Return a path of this dashboard; anything else becomes the overview."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_local and "\\" not in path and path.isprintable() else "/"


@router.get("/sign-in")
async def show_sign_in(request: Request, next_: Next = "/") -> Response:
    """Show the form; on an open server, or signed in, go on."""
    try:
        await find_viewer(request)
    except TraplineError:
        return _form(request, next_)
    return rendering.redirect(request, _without_prefix(request, local_path(next_)))


@router.post("/sign-in")
async def start_session(
    request: Request,
    key: Annotated[str, Form(max_length=500)] = "",
    next_: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Exchange a key for a session."""
    await require_same_origin(request)
    try:
        _, token = await sign_in(request, key.strip())
    except TraplineError as error:
        return _form(request, next_, error.message, status=error.http_status)
    response = rendering.redirect(request, _without_prefix(request, local_path(next_)))
    set_cookie(request, response, token)
    return response


@router.post("/sign-out")
async def sign_out(request: Request, conn: Changing, viewer: CurrentViewer) -> Response:
    """End the session."""
    if viewer.session is not None:
        await sessions.revoke(conn, viewer.principal.organisation_id, viewer.session.id)
    response = rendering.redirect(request, "/sign-in")
    clear_cookie(request, response)
    return response


def _without_prefix(request: Request, path: str) -> str:
    return path.removeprefix(rendering.prefix_of(request)) or "/"


def _form(
    request: Request, next_: str, error: str | None = None, *, status: int = HTTPStatus.OK
) -> Response:
    response = rendering.page(request, None, "sign_in.html", next=local_path(next_), error=error)
    response.status_code = status
    return response
