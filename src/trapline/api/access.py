"""Who is asking: the API key of a request, or nobody in particular on an open server.

A server is open when it listens on a loopback address and no key exists. It then serves local
programs only: a web page in the user's browser, which could reach it too, is turned away.
"""

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import URL
from starlette.requests import HTTPConnection

from trapline.api.acquaintances import Acquaintances
from trapline.api.engine import Engine
from trapline.api.limits import RateLimits
from trapline.api.tracing import note_asker
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.db.sql.tenancy import WhoAsksRow
from trapline.db.tenancy import Principal
from trapline.errors import Forbidden, Unauthorised
from trapline.pipeline.asking import Claim
from trapline.settings import Settings


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Tell whether a host name or address can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def _asked(host: str | None, server: tuple[str, int | None] | None) -> str:
    """Return the name by which a server was asked: that of the request, or its own where that has none."""
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    scope = {"scheme": "http", "server": server, "path": "/", "headers": headers}
    return URL(scope=scope).hostname or ""


async def principal(request: HTTPConnection) -> Principal:
    """Find who acts in this request, or refuse it. What this process has answered them is stored then."""
    who = await _hasty(request)
    engine: Engine | None = request.app.state.engine
    if engine is not None:
        # An administrator may look at every organisation.
        await engine.scraper.settled(None if who.administrator else who.organisation_id)
    return who


async def _hasty(request: HTTPConnection) -> Principal:
    """Find who acts, whatever is still to be stored of what they asked before."""
    who = await _principal(request)
    note_asker(request, who.organisation_id)
    return who


async def _principal(request: HTTPConnection) -> Principal:
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    token = _bearer(request)
    # In the database each time: a key that is revoked is refused from then on, by every process.
    found = await database.statement(lambda conn: tenancy.who_asks(conn, token))
    if token and _is_admin_key(settings, token):
        return await _administrator(database, found)
    acquaintances: Acquaintances = request.app.state.acquaintances
    if not found.any_key:
        _require_local(request, settings)
        return acquaintances.meet(token, await _administrator(database, found))
    if token is None:
        raise Unauthorised
    who = tenancy.authenticated(found)
    if who.api_key_id is not None and not found.is_noted:
        async with database.system_tx() as conn:
            await tenancy.note_use(conn, who.api_key_id)
    limits: RateLimits = request.app.state.limits
    limits.take(who.api_key_id)
    return acquaintances.meet(token, who)


async def _administrator(database: Database, found: WhoAsksRow) -> Principal:
    """Return who may do everything, at home in the organisation that acts without a key."""
    if not found.has_default:
        async with database.system_tx() as conn:
            await tenancy.ensure_default(conn)
    return Principal.administrator_of(tenancy.organisation_id_of(tenancy.DEFAULT_ORGANISATION))


CurrentPrincipal = Annotated[Principal, Depends(principal)]


def scoped(scope: str) -> Callable[[Principal], Awaitable[Principal]]:
    """Make a dependency that refuses keys without a scope."""

    async def require(who: CurrentPrincipal) -> Principal:
        return _require(who, scope)

    return require


def _require(who: Principal, scope: str) -> Principal:
    if scope not in who.scopes:
        raise Forbidden(f"This API key lacks the scope {scope!r}.")
    return who


@dataclass(frozen=True, slots=True)
class Hasty:
    """Who asks for a scrape, which waits for what concerns its own page alone."""

    who: Principal
    claim: Claim | None
    """Set where that is what was known a moment ago: it is to be looked up with what is done."""
    request: HTTPConnection

    async def established(self) -> "Hasty":
        """Find out anew who asks, or refuse them."""
        return Hasty(_require(await _hasty(self.request), "write"), None, self.request)


async def hasty_writer(request: HTTPConnection) -> Hasty:
    """Find who asks for a scrape."""
    remembered = _remembered(request)
    if remembered is None:
        return Hasty(_require(await _hasty(request), "write"), None, request)
    note_asker(request, remembered.organisation_id)
    return Hasty(_require(remembered, "write"), Claim(remembered.api_key_id), request)


def _remembered(request: HTTPConnection) -> Principal | None:
    """Return who asked with the same key a moment ago, once all else has been done that concerns them."""
    settings: Settings = request.app.state.settings
    acquaintances: Acquaintances = request.app.state.acquaintances
    token = _bearer(request)
    if token and _is_admin_key(settings, token):
        # It is in no table, so that no statement could tell whether it still holds.
        return None
    who = acquaintances.find(token)
    if who is None:
        return None
    if who.api_key_id is None:
        _require_local(request, settings)
    limits: RateLimits = request.app.state.limits
    limits.take(who.api_key_id)
    return who


HastyWriter = Annotated[Hasty, Depends(hasty_writer)]
"""For scrapes, which wait for what concerns their own page alone."""
Reader = Annotated[Principal, Depends(scoped("read"))]
Writer = Annotated[Principal, Depends(scoped("write"))]
OrganisationAdmin = Annotated[Principal, Depends(scoped("admin"))]


async def administrator(who: CurrentPrincipal) -> Principal:
    """Refuse everyone but the administrator of the whole server."""
    if not who.administrator:
        raise Forbidden("Only the server's administrator may do that (TRAPLINE_ADMIN_KEY).")
    return who


Administrator = Annotated[Principal, Depends(administrator)]


async def tenant(request: Request, who: CurrentPrincipal) -> AsyncIterator[Connection]:
    """Open a transaction that sees the rows of the caller's organisation, and commit it at the end."""
    database: Database = request.app.state.database
    async with database.tenant_tx(who.organisation_id) as conn:
        yield conn


# Function scope: what a handler wrote is committed before its answer is sent.
Tenant = Annotated[Connection, Depends(tenant, scope="function")]


async def visible(request: Request, who: CurrentPrincipal) -> AsyncIterator[Connection]:
    """Open a transaction over all that the caller may see: everything for the administrator."""
    database: Database = request.app.state.database
    opened = database.system_tx() if who.administrator else database.tenant_tx(who.organisation_id)
    async with opened as conn:
        yield conn


Visible = Annotated[Connection, Depends(visible, scope="function")]


async def system(request: Request, who: Administrator) -> AsyncIterator[Connection]:
    """Open a transaction over all organisations, for the administrator."""
    del who
    database: Database = request.app.state.database
    async with database.system_tx() as conn:
        yield conn


System = Annotated[Connection, Depends(system, scope="function")]


def name_of(who: Principal) -> str:
    """Return how what someone did is signed."""
    return "api" if who.api_key_id is None else f"key {who.api_key_id}"


def _bearer(request: HTTPConnection) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip() or None
    if request.scope["type"] == "websocket":
        # A browser's WebSocket has no other place for a key than the name of a subprotocol.
        return request.headers.get("sec-websocket-protocol", "").partition(",")[0].strip() or None
    return None


def _is_admin_key(settings: Settings, token: str) -> bool:
    expected = settings.admin_key
    return expected is not None and hmac.compare_digest(
        token.encode(), expected.get_secret_value().encode()
    )


def _require_local(request: HTTPConnection, settings: Settings) -> None:
    if not is_loopback(settings.host):
        raise Unauthorised
    # A page that points its own name at 127.0.0.1 shows in Host; one that calls us, in Origin.
    server = request.scope.get("server")
    host = _asked(request.headers.get("host"), None if server is None else tuple(server))
    origin = request.headers.get("origin")
    if not is_loopback(host) or (origin and not is_loopback(urlsplit(origin).hostname or "")):
        raise Forbidden(
            "Without API keys this server answers local programs only;"
            " create a key with `trapline keys create` to use it from elsewhere."
        )
