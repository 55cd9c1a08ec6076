"""The principal of a request: found by its API key, or the administrator on an open server.

A server is open when it listens on a loopback address and no key was ever created. It then serves local
programs only and refuses web pages in the user's browser, which could reach it too.
"""

import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import URL
from starlette.requests import HTTPConnection

from trapline.api.principal_cache import PrincipalCache
from trapline.api.rate_limit import RateLimits
from trapline.api.request_tracing import note_organisation
from trapline.api.services import Services
from trapline.db import audit_trail, tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.db.sql.tenancy import FindCallerRow
from trapline.db.tenancy import Principal
from trapline.errors import Forbidden, Unauthorised
from trapline.pipeline.caller import Claim
from trapline.settings import Settings

_ACCESS_SECONDS: Final = 1.0
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_READS_BY_POST: Final = frozenset({"/api/search"})
_AUDITED: Final = ("/api/", "/upload/")


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
def _request_host(host: str | None, server: tuple[str, int | None] | None) -> str:
    """Return the host that a request names in its Host header, else the server's own."""
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    scope = {"scheme": "http", "server": server, "path": "/", "headers": headers}
    return URL(scope=scope).hostname or ""


async def find_principal(request: HTTPConnection) -> Principal:
    """Return the principal or refuse the request; first store what this process has answered to them."""
    principal = await _authenticate(request)
    services: Services | None = request.app.state.services
    if services is not None:
        # An administrator sees every organisation.
        await services.scraper.wait_until_stored(
            None if principal.administrator else principal.organisation_id
        )
    return principal


async def _authenticate(request: HTTPConnection) -> Principal:
    """Return the principal without waiting until earlier answers are stored."""
    principal = await principal_of_key(request, _bearer(request))
    note_organisation(request, principal.organisation_id)
    return principal


async def principal_of_key(request: HTTPConnection, key: str | None) -> Principal:
    """Return the principal of a key; without a key the administrator, if the server is open."""
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    # Looked up each time: every process refuses a revoked key at once.
    row = await database.run_statement(lambda conn: tenancy.look_up_caller(conn, key))
    if key and is_admin_key(settings, key):
        return await _administrator(database, row)
    principal_cache: PrincipalCache = request.app.state.principal_cache
    if not row.any_key:
        require_local(request, settings)
        return principal_cache.put(key, await _administrator(database, row))
    if key is None:
        raise Unauthorised
    principal = tenancy.principal_of(row)
    if principal.api_key_id is not None and not row.is_noted:
        async with database.system_tx() as conn:
            await tenancy.touch_key(conn, principal.api_key_id)
    limits: RateLimits = request.app.state.rate_limits
    limits.take(principal.api_key_id)
    return principal_cache.put(key, principal)


async def _administrator(database: Database, row: FindCallerRow) -> Principal:
    """Return the administrator, who belongs to the default organisation."""
    if not row.has_default:
        async with database.system_tx() as conn:
            await tenancy.ensure_default(conn)
    return Principal.administrator_of(tenancy.organisation_id_of(tenancy.DEFAULT_ORGANISATION))


async def find_reader(request: HTTPConnection) -> Principal:
    """As `find_principal`, for a principal who may read: WebSockets have no dependencies."""
    return _require(await find_principal(request), "read")


@dataclass(slots=True)
class StreamAccess:
    """The access of an open stream: it ends when its key is revoked. Checked once a second at most."""

    database: Database
    principal: Principal
    _next_check: float = 0.0

    async def require(self) -> None:
        """Unauthorised if the key was revoked since the stream began."""
        key_id = self.principal.api_key_id
        if key_id is None or time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + _ACCESS_SECONDS
        if not await self.database.run_statement(lambda conn: tenancy.is_live_key(conn, key_id)):
            raise Unauthorised("The API key was revoked.")

    async def revoked(self) -> bool:
        try:
            await self.require()
        except Unauthorised:
            return True
        return False


CurrentPrincipal = Annotated[Principal, Depends(find_principal)]


def scoped(scope: str) -> Callable[[Principal], Awaitable[Principal]]:
    """Make a dependency that refuses keys without a scope."""

    async def require(principal: CurrentPrincipal) -> Principal:
        return _require(principal, scope)

    return require


def _require(principal: Principal, scope: str) -> Principal:
    if scope not in principal.scopes:
        raise Forbidden(f"This API key lacks the scope {scope!r}.")
    return principal


@dataclass(frozen=True, slots=True)
class ScrapePrincipal:
    """The principal of a scrape, which waits only for earlier answers about its own page."""

    principal: Principal
    claim: Claim | None
    """Set if the principal came from the cache: the scrape's own statement must verify it."""
    request: HTTPConnection

    async def verified(self) -> "ScrapePrincipal":
        """Look the principal up in the database, or refuse the request."""
        principal = _require(await _authenticate(self.request), "write")
        return ScrapePrincipal(principal, None, self.request)


async def scrape_writer(request: HTTPConnection) -> ScrapePrincipal:
    """Return the principal of a scrape, from the cache if it is there."""
    cached = _cached_principal(request)
    if cached is None:
        return ScrapePrincipal(_require(await _authenticate(request), "write"), None, request)
    note_organisation(request, cached.organisation_id)
    return ScrapePrincipal(_require(cached, "write"), Claim(cached.api_key_id), request)


def _cached_principal(request: HTTPConnection) -> Principal | None:
    """Return the cached principal of a key after the checks that need no database."""
    settings: Settings = request.app.state.settings
    principal_cache: PrincipalCache = request.app.state.principal_cache
    token = _bearer(request)
    if token and is_admin_key(settings, token):
        # It is in no table, so no statement could verify it.
        return None
    principal = principal_cache.get(token)
    if principal is None:
        return None
    if principal.api_key_id is None:
        require_local(request, settings)
    limits: RateLimits = request.app.state.rate_limits
    limits.take(principal.api_key_id)
    return principal


ScrapeWriter = Annotated[ScrapePrincipal, Depends(scrape_writer)]
Reader = Annotated[Principal, Depends(scoped("read"))]
Writer = Annotated[Principal, Depends(scoped("write"))]
OrganisationAdmin = Annotated[Principal, Depends(scoped("admin"))]


async def administrator(principal: CurrentPrincipal) -> Principal:
    """Refuse all but the administrator of the whole server."""
    if not principal.administrator:
        raise Forbidden("Only the server's administrator may do that (TRAPLINE_ADMIN_KEY).")
    return principal


Administrator = Annotated[Principal, Depends(administrator)]


async def tenant(request: Request, principal: CurrentPrincipal) -> AsyncIterator[Connection]:
    """Open a transaction that sees the rows of the caller's organisation, and commit it at the end."""
    database: Database = request.app.state.database
    async with database.tenant_tx(principal.organisation_id) as conn:
        yield conn
        await record_change(request, conn, principal)


# Function scope: the transaction is committed before the response is sent.
Tenant = Annotated[Connection, Depends(tenant, scope="function")]


async def visible(request: Request, principal: CurrentPrincipal) -> AsyncIterator[Connection]:
    """Open a transaction over all rows that the caller may see: for the administrator, all rows."""
    database: Database = request.app.state.database
    opened = (
        database.system_tx()
        if principal.administrator
        else database.tenant_tx(principal.organisation_id)
    )
    async with opened as conn:
        yield conn
        await record_change(request, conn, principal)


Visible = Annotated[Connection, Depends(visible, scope="function")]


async def system(request: Request, principal: Administrator) -> AsyncIterator[Connection]:
    """Open a transaction over all organisations, for the administrator."""
    database: Database = request.app.state.database
    async with database.system_tx() as conn:
        yield conn
        await record_change(request, conn, principal)


System = Annotated[Connection, Depends(system, scope="function")]


async def record_change(request: Request, conn: Connection, principal: Principal) -> None:
    """Add a request that changed something to the audit trail, in the same transaction.

    Firecrawl's endpoints are left out: a job is its own record of who asked for it.
    """
    path = request.url.path
    if request.method in _READS or path in _READS_BY_POST or not path.startswith(_AUDITED):
        return
    targets = list(request.path_params.values())
    await audit_trail.record(
        conn,
        principal,
        "api",
        request.scope["endpoint"].__name__,
        target=str(targets[0]) if targets else None,
        client=None if request.client is None else request.client.host,
    )


def actor_name(principal: Principal) -> str:
    """Return the name under which actions of a principal are logged."""
    return "api" if principal.api_key_id is None else f"key {principal.api_key_id}"


def _bearer(request: HTTPConnection) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip() or None
    if request.scope["type"] == "websocket":
        # A browser's WebSocket can carry a key only as the name of a subprotocol.
        return request.headers.get("sec-websocket-protocol", "").partition(",")[0].strip() or None
    return None


def is_admin_key(settings: Settings, token: str) -> bool:
    expected = settings.server.admin_key
    return expected is not None and hmac.compare_digest(
        token.encode(), expected.get_secret_value().encode()
    )


def require_local(request: HTTPConnection, settings: Settings) -> None:
    """Refuse requests from elsewhere to a server without keys."""
    if not is_loopback(settings.server.host):
        raise Unauthorised
    # Host gives away a page that points its own name at 127.0.0.1; Origin, a page that calls us.
    server = request.scope.get("server")
    host = _request_host(request.headers.get("host"), None if server is None else tuple(server))
    origin = request.headers.get("origin")
    if not is_loopback(host) or (origin and not is_loopback(urlsplit(origin).hostname or "")):
        raise Forbidden(
            "Without API keys this server answers local programs only;"
            " create a key with `trapline keys create` to use it from elsewhere."
        )
