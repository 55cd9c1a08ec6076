"""The viewer of a request: the principal of a session cookie, or the administrator on an open server.

A viewer without the scope `write` sees and cannot change. A change must come from a page of ours: the
browser says so in Sec-Fetch-Site or Origin.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request

from trapline.api.principal import is_admin_key, principal_of_key
from trapline.api.services import Services
from trapline.db import audit_trail, sessions
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.db.sql.sessions import FindSessionRow
from trapline.db.tenancy import Principal
from trapline.errors import Forbidden, Unauthorised
from trapline.settings import Settings

COOKIE: Final = "trapline_session"
_ROTATED: Final = "rotated_session"
_DETAIL: Final = "audit_detail"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at a page, and what they may do."""

    principal: Principal
    session: FindSessionRow | None = None
    """None on an open server."""

    @property
    def name(self) -> str:
        if self.session is None or self.session.key_name is None:
            return "administrator"
        return self.session.key_name

    @property
    def may_write(self) -> bool:
        return "write" in self.principal.scopes

    @property
    def may_administer(self) -> bool:
        return "admin" in self.principal.scopes

    @property
    def is_operator(self) -> bool:
        return self.principal.administrator


def admin_key_of(settings: Settings) -> str | None:
    key = settings.server.admin_key
    return None if key is None else key.get_secret_value()


async def find_viewer(request: Request) -> Viewer:
    """Return the viewer; Unauthorised sends a browser to the sign-in page."""
    viewer = await _signed_in(request) or Viewer(await _open_server(request))
    if "read" not in viewer.principal.scopes:
        raise Forbidden("This API key lacks the scope 'read'.")
    services: Services | None = request.app.state.services
    if services is not None:
        await services.scraper.wait_until_stored(viewer.principal.organisation_id)
    return viewer


async def _open_server(request: Request) -> Principal:
    try:
        return await principal_of_key(request, None)
    except Unauthorised:
        raise Unauthorised("Sign in with an API key.") from None


async def _signed_in(request: Request) -> Viewer | None:
    token = request.cookies.get(COOKIE)
    if not token:
        return None
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    row = await database.run_statement(
        lambda conn: sessions.find(conn, token, admin_key=admin_key_of(settings))
    )
    if row is None:
        return None
    await _rotate(request, database, row, token)
    return Viewer(sessions.principal_of(row), row)


async def _rotate(request: Request, database: Database, row: FindSessionRow, token: str) -> None:
    now = datetime.now(UTC)
    if request.method == "GET" and sessions.is_due(row, now=now):
        async with database.system_tx() as conn:
            setattr(request.state, _ROTATED, await sessions.rotate(conn, row, token, now=now))


def new_token(scope: Any) -> str | None:
    """Return the token that replaces the session's, if this request rotated it."""
    token: str | None = scope.get("state", {}).get(_ROTATED)
    return token


CurrentViewer = Annotated[Viewer, Depends(find_viewer)]


async def require_same_origin(request: Request) -> None:
    """Refuse a change that another site's page asks for."""
    site = request.headers.get("sec-fetch-site")
    origin = urlsplit(request.headers.get("origin", "")).netloc
    own = site == "same-origin" if site is not None else origin == request.headers.get("host")
    if not own:
        raise Forbidden("This change was not asked for by a page of this dashboard.")


def _with_scope(scope: str) -> Callable[[Viewer], Awaitable[Viewer]]:
    async def require(viewer: CurrentViewer) -> Viewer:
        if scope not in viewer.principal.scopes:
            raise Forbidden(f"You may not do that: your API key lacks the scope {scope!r}.")
        return viewer

    return require


_writer = _with_scope("write")
_owner = _with_scope("admin")
Owner = Annotated[Viewer, Depends(_owner)]


async def _editor(request: Request, viewer: Annotated[Viewer, Depends(_writer)]) -> Viewer:
    await require_same_origin(request)
    return viewer


async def _owning_editor(request: Request, viewer: Owner) -> Viewer:
    await require_same_origin(request)
    return viewer


Editor = Annotated[Viewer, Depends(_editor)]
OwningEditor = Annotated[Viewer, Depends(_owning_editor)]


async def operator(viewer: CurrentViewer) -> Viewer:
    """Refuse all but the administrator of the whole server."""
    if not viewer.is_operator:
        raise Forbidden("Only the server's administrator may see that.")
    return viewer


Operator = Annotated[Viewer, Depends(operator)]


async def _read(request: Request, viewer: CurrentViewer) -> AsyncIterator[Connection]:
    database: Database = request.app.state.database
    async with database.tenant_tx(viewer.principal.organisation_id) as conn:
        yield conn


async def _change(request: Request, viewer: CurrentViewer) -> AsyncIterator[Connection]:
    """Open the transaction of a change, which also writes its entry of the audit trail."""
    await require_same_origin(request)
    database: Database = request.app.state.database
    async with database.tenant_tx(viewer.principal.organisation_id) as conn:
        yield conn
        await record(request, conn, viewer.principal)


Reading = Annotated[Connection, Depends(_read, scope="function")]
Changing = Annotated[Connection, Depends(_change, scope="function")]


async def record(
    request: Request, conn: Connection, principal: Principal, action: str | None = None
) -> None:
    """Add the request to the audit trail."""
    targets = list(request.path_params.values())
    await audit_trail.record(
        conn,
        principal,
        "dashboard",
        action or request.scope["endpoint"].__name__,
        target=str(targets[0]) if targets else None,
        detail=getattr(request.state, _DETAIL, None),
        client=None if request.client is None else request.client.host,
    )


def note_detail(request: Request, **detail: Any) -> None:
    """Say more of a change in its entry of the audit trail."""
    setattr(request.state, _DETAIL, detail)


async def sign_in(request: Request, key: str) -> tuple[Principal, str]:
    """Start a session for a key; return its principal and the token of the cookie."""
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    principal = await principal_of_key(request, key)
    admin = key if is_admin_key(settings, key) else None
    if principal.api_key_id is None and admin is None:
        raise Unauthorised("This server has no keys: no sign-in is needed.")
    async with database.system_tx() as conn:
        token = await sessions.create(
            conn,
            principal,
            admin_key=admin,
            client=None if request.client is None else request.client.host,
            user_agent=request.headers.get("user-agent"),
            now=datetime.now(UTC),
        )
        await record(request, conn, principal, "sign_in")
    return principal, token
