"""Two pools of connections and the only ways to get a transaction.

`system_tx` acts as the worker role, over all organisations; `tenant_tx` as the tenant role, for
one. LISTEN and advisory locks need a connection of their own: `dedicated`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import asyncpg

from trapline.db import connection, embedded, migrate, requirements, roles
from trapline.db.connection import LOST, TENANT, WORKER, Connection, OwnConnection
from trapline.errors import DatabaseUnavailable, Forbidden
from trapline.logs import get_logger
from trapline.model import MemberId, OrganisationId
from trapline.settings import Settings

log = get_logger(__name__)

# How long a transaction waits for a server that is away: a restart of PostgreSQL takes seconds.
_PATIENCE = 20.0
_PAUSE = 0.2

_ENTER = (
    "SELECT set_config('trapline.organisation_id', $1, true),"
    " set_config('trapline.member_id', $2, true)"
)

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL that holds Trapline's schema."""

    dsn: str
    settings: Settings
    worker_pool: Pool
    tenant_pool: Pool

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Database"]:
        """Start or find the server, bring its schema up to date, and connect."""
        async with server(settings) as dsn:
            async with owner(dsn, settings) as conn:
                await prepare(conn)
            async with cls.connect(dsn, settings) as database:
                yield database

    @classmethod
    @asynccontextmanager
    async def connect(cls, dsn: str, settings: Settings) -> AsyncIterator["Database"]:
        """Connect to a database whose schema is up to date."""
        async with AsyncExitStack() as stack:
            # API and CLI have few transactions at once; the rest is for the workers.
            tenants = max(1, settings.pool_size // 3)
            worker_pool = await stack.enter_async_context(
                _pool(dsn, settings, WORKER, settings.pool_size - tenants)
            )
            tenant_pool = await stack.enter_async_context(_pool(dsn, settings, TENANT, tenants))
            renewal = asyncio.create_task(_renew((worker_pool, tenant_pool), settings))
            stack.callback(renewal.cancel)
            yield cls(dsn, settings, worker_pool, tenant_pool)

    @asynccontextmanager
    async def system_tx(self) -> AsyncIterator[Connection]:
        """Open a transaction of the system itself, over all organisations."""
        async with _transaction(self.worker_pool) as conn:
            yield conn

    @asynccontextmanager
    async def tenant_tx(
        self, organisation_id: OrganisationId, member_id: MemberId | None = None
    ) -> AsyncIterator[Connection]:
        """Open a transaction that sees one organisation's rows, as its key or as one member."""
        async with _transaction(
            self.tenant_pool, str(organisation_id), str(member_id or "")
        ) as conn:
            if member_id is not None and not await conn.fetchval(
                "SELECT EXISTS (SELECT FROM tenancy.member WHERE id = $1)", member_id
            ):
                raise Forbidden("This member does not belong to that organisation.")
            yield conn

    async def dedicated(self) -> OwnConnection:
        """Open a connection outside the pools, for LISTEN and advisory locks. The caller closes."""
        return await connection.connect(self.dsn, connection.session(self.settings, WORKER))


@asynccontextmanager
async def server(settings: Settings) -> AsyncIterator[str]:
    """Yield the URL of the external PostgreSQL, or of the embedded one while it is held running."""
    external = settings.external_dsn()
    if external is not None:
        yield external
        return
    async with embedded.running(settings) as running:
        yield running.dsn


@asynccontextmanager
async def owner(dsn: str, settings: Settings) -> AsyncIterator[OwnConnection]:
    """Connect as the owner of the schema, with the long time limits of maintenance."""
    try:
        conn = await connection.connect(dsn, connection.maintenance_session(settings))
    except (*LOST, asyncpg.PostgresError, ValueError) as error:
        raise DatabaseUnavailable(f"PostgreSQL cannot be reached: {error}") from error
    try:
        yield conn
    finally:
        await conn.close()


async def prepare(conn: OwnConnection) -> list[migrate.Applied]:
    """Make the database ready for this version of Trapline; say what had to be applied."""
    await prepare_server(conn)
    return await migrate.upgrade(conn)


async def prepare_server(conn: Connection) -> None:
    """Check the server, and make the roles and extensions that the schema needs."""
    await requirements.require(conn)
    await roles.ensure(conn)
    await requirements.install_extensions(conn)


@asynccontextmanager
async def _pool(dsn: str, settings: Settings, role: str, size: int) -> AsyncIterator[Pool]:
    pool = asyncpg.create_pool(
        dsn,
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=settings.connection_max_idle,
        server_settings=connection.session(settings, role),
        init=connection.prepare,
        connection_class=connection.Session,
    )
    async with pool:
        yield pool


async def _renew(pools: tuple[Pool, ...], settings: Settings) -> None:
    """Replace connections by age, so that no backend keeps its memory for ever."""
    while True:
        await asyncio.sleep(settings.connection_max_age)
        for pool in pools:
            await pool.expire_connections()


@asynccontextmanager
async def _transaction(
    pool: Pool, organisation: str | None = None, member: str = ""
) -> AsyncIterator[Connection]:
    """Begin on a live connection: until the first statement has run, a lost one can be replaced."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while True:
        try:
            conn = await pool.acquire()
        except LOST as error:
            await _wait_for_server(error, deadline)
            continue
        transaction = conn.transaction()
        try:
            await transaction.start()
            if organisation is not None:
                await conn.execute(_ENTER, organisation, member)
            break
        except LOST as error:
            await pool.release(conn)
            await _wait_for_server(error, deadline)
    try:
        yield conn
    except BaseException:
        if not conn.is_closed():
            await transaction.rollback()
        raise
    else:
        await transaction.commit()
    finally:
        await pool.release(conn)


async def _wait_for_server(error: Exception, deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise DatabaseUnavailable(f"PostgreSQL went away and did not come back: {error}") from error
    log.warning("PostgreSQL is away", error=str(error))
    await asyncio.sleep(_PAUSE)
