"""Connection pools by role, and the only ways to get a transaction.

`system_tx` acts as the worker role, over all organisations; `tenant_tx` as the tenant role, for
one. LISTEN and advisory locks need a dedicated connection: `dedicated`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from trapline.db import connection, embedded, migrate, roles, server_requirements
from trapline.db.connection import LOST, TENANT, WORKER, Connection, OwnConnection, PooledConnection
from trapline.db.resource_shortage import ResourceShortage
from trapline.db.sticky_connection import Pool, StickyConnection
from trapline.errors import DatabaseUnavailable, Forbidden
from trapline.logs import get_logger
from trapline.model import MemberId, OrganisationId
from trapline.settings import DatabaseSettings, Settings

log = get_logger(__name__)

# Seconds that a transaction waits for an unreachable server: a restart of PostgreSQL takes a few.
_SERVER_WAIT = 20.0
_PAUSE = 0.2
# Connections for claiming and finishing: two claims run at a time, and beside them one batch is stored.
_STEADY_CONNECTIONS = 3

# In one message, so that a tenant's transaction begins as fast as any other.
_BEGIN_TENANT = (
    "BEGIN; SELECT set_config('trapline.organisation_id', '{organisation}', true),"
    " set_config('trapline.member_id', '{member}', true)"
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL that holds Trapline's schema."""

    server: "Server"
    settings: Settings
    worker_pool: Pool
    tenant_pool: Pool
    sticky: StickyConnection
    # For claiming and finishing only; None where the pool is too small.
    steady_pool: "Pool | None" = None
    shortage: ResourceShortage = field(default_factory=ResourceShortage)

    @property
    def dsn(self) -> str:
        return self.server.dsn

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Database"]:
        """Start or find the server, migrate its schema, and connect."""
        async with server(settings.database) as found:
            async with owner(found.dsn, settings.database) as conn:
                await prepare(conn)
            async with cls.connect(found, settings) as database:
                yield database

    @classmethod
    @asynccontextmanager
    async def connect(cls, server: "Server", settings: Settings) -> AsyncIterator["Database"]:
        """Connect to a database whose schema is up to date."""
        async with AsyncExitStack() as stack:
            # The API and the CLI run few transactions at once; the workers get the rest.
            tenants = max(1, settings.database.pool_size // 3)
            workers = settings.database.pool_size - tenants
            steady = _STEADY_CONNECTIONS if workers >= 2 * _STEADY_CONNECTIONS else 0
            sessions = connection.connection_class()

            async def pool(role: str, size: int, purpose: str) -> Pool:
                parameters = connection.session_parameters(settings.database, role, purpose=purpose)
                opening = _pool(server.dsn, settings.database, sessions, parameters, size)
                return await stack.enter_async_context(opening)

            worker_pool = await pool(WORKER, workers - steady, "worker")
            tenant_pool = await pool(TENANT, tenants, "tenant")
            steady_pool = await pool(WORKER, steady, "claims") if steady else None
            pools = [one for one in (worker_pool, tenant_pool, steady_pool) if one is not None]
            renewal = asyncio.create_task(_renew(pools, settings.database.connection_max_age))
            stack.callback(renewal.cancel)
            sticky = StickyConnection(worker_pool)
            stack.push_async_callback(sticky.aclose)
            yield cls(server, settings, worker_pool, tenant_pool, sticky, steady_pool)

    def _system_pool(self, *, steady: bool) -> Pool:
        """Return the pool for the system's work.

        Claiming and finishing run all the time, on steady connections that soon hold all their cached
        plans. On a shared pool any statement may push them to a new connection, where PostgreSQL
        plans anew: a tenth of a second.
        """
        return self.steady_pool if steady and self.steady_pool is not None else self.worker_pool

    @asynccontextmanager
    async def system_tx(self, *, steady: bool = False) -> AsyncIterator[Connection]:
        """Open a transaction of the system itself, over all organisations."""
        async with _transaction(self.server, self._system_pool(steady=steady)) as conn:
            yield conn

    @asynccontextmanager
    async def system_autocommit(self, *, steady: bool = False) -> AsyncIterator[Connection]:
        """Lend a connection in autocommit for one statement of the system.

        This saves the round trips of BEGIN and COMMIT. It does not wait for an unreachable server.
        """
        conn = await self._system_pool(steady=steady).acquire()
        try:
            yield conn
        finally:
            await _release(conn)

    async def run_statement(self, run: Callable[[Connection], Awaitable[T]]) -> T:
        """Run one statement of the system, or a few that only read, in autocommit.

        When the connection is lost they run again on another one, so they must be idempotent.
        """
        deadline = asyncio.get_running_loop().time() + _SERVER_WAIT
        while True:
            try:
                return await self.sticky.run(run)
            except LOST as error:
                await _wait_for_server(self.server, error, deadline)

    @asynccontextmanager
    async def tenant_tx(
        self, organisation_id: OrganisationId, member_id: MemberId | None = None
    ) -> AsyncIterator[Connection]:
        """Open a transaction that sees one organisation's rows, for its API key or for one member."""
        # Parsed once more, because they become part of a statement.
        organisation, member = UUID(str(organisation_id)), member_id and UUID(str(member_id))
        begin = _BEGIN_TENANT.format(organisation=organisation, member=member or "")
        async with _transaction(self.server, self.tenant_pool, begin) as conn:
            if member_id is not None and not await conn.fetchval(
                "SELECT EXISTS (SELECT FROM tenancy.member WHERE id = $1)", member_id
            ):
                raise Forbidden("This member does not belong to that organisation.")
            yield conn

    async def dedicated(self, purpose: str) -> OwnConnection:
        """Open a connection outside the pools, for LISTEN and advisory locks. The caller closes it."""
        parameters = connection.session_parameters(self.settings.database, WORKER, purpose=purpose)
        return await connection.connect(self.dsn, parameters)

    def owner(self) -> AbstractAsyncContextManager[OwnConnection]:
        """Open a connection as the schema's owner, outside the pools; it is closed with the block."""
        return owner(self.dsn, self.settings.database)


class Server(Protocol):
    """A PostgreSQL server: its DSN, and how to wait until it takes connections."""

    @property
    def dsn(self) -> str: ...

    async def started(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ExternalServer:
    """A PostgreSQL that others run: when it is unreachable, we can only try again."""

    dsn: str

    async def started(self) -> None:
        await asyncio.sleep(_PAUSE)


@asynccontextmanager
async def server(settings: DatabaseSettings) -> AsyncIterator[Server]:
    """Yield the external PostgreSQL, or the embedded one, which runs as long as it is held."""
    external = settings.external_dsn()
    if external is not None:
        yield ExternalServer(external)
        return
    async with embedded.running(settings) as running:
        yield running


@asynccontextmanager
async def owner(dsn: str, settings: DatabaseSettings) -> AsyncIterator[OwnConnection]:
    """Connect as the owner of the schema, with the long time limits of maintenance."""
    try:
        conn = await connection.connect(dsn, connection.maintenance_parameters(settings))
    except (*LOST, asyncpg.PostgresError, ValueError) as error:
        raise DatabaseUnavailable(f"PostgreSQL cannot be reached: {error}") from error
    try:
        yield conn
    finally:
        await conn.close()


async def prepare(conn: OwnConnection) -> list[migrate.AppliedMigration]:
    """Migrate the database to this version of Trapline; return what was applied."""
    await prepare_server(conn)
    return await migrate.upgrade(conn)


async def prepare_server(conn: Connection) -> None:
    """Check the server, and create the roles and extensions that the schema needs."""
    await server_requirements.require(conn)
    await roles.ensure(conn)
    await server_requirements.install_extensions(conn)


@asynccontextmanager
async def _pool(
    dsn: str,
    settings: DatabaseSettings,
    sessions: type[PooledConnection],
    parameters: dict[str, str],
    size: int,
) -> AsyncIterator[Pool]:
    pool = asyncpg.create_pool(
        dsn,
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=settings.connection_max_idle,
        server_settings=parameters,
        init=lambda conn: connection.initialise(conn, sessions),
        connection_class=sessions,
    )
    async with pool:
        yield pool


async def _renew(pools: Sequence[Pool], max_age: float) -> None:
    """Replace connections by age, so that no backend keeps its memory for ever."""
    while True:
        await asyncio.sleep(max_age)
        for pool in pools:
            await pool.expire_connections()


@asynccontextmanager
async def _transaction(
    server: Server, pool: Pool, begin: str | None = None
) -> AsyncIterator[Connection]:
    conn, transaction = await _begin(server, pool, begin)
    try:
        yield conn
    except BaseException:
        # A lost connection has nothing to roll back; the original error is the one to raise.
        with suppress(*LOST):
            await _finish(conn, transaction.rollback())
        raise
    else:
        await _finish(conn, transaction.commit())
    finally:
        await _release(conn)


@dataclass(frozen=True, slots=True)
class _StartedTransaction:
    """A transaction with its own BEGIN statement."""

    conn: "PoolConnectionProxy[asyncpg.Record]"
    begin: str

    async def start(self) -> None:
        await self.conn.execute(self.begin)

    async def commit(self) -> None:
        await self.conn.execute("COMMIT")

    async def rollback(self) -> None:
        await self.conn.execute("ROLLBACK")


async def _release(conn: "PoolConnectionProxy[asyncpg.Record]") -> None:
    """Return a connection to its pool.

    asyncpg's own `release` starts a task, in case it is cancelled half-way. Our connections have
    nothing to reset, so there is nothing to wait for.
    """
    # asyncpg has already taken back a connection that closed.
    if conn._con is not None:  # type: ignore[attr-defined]  # noqa: SLF001 (as `release` asks)
        await conn._holder.release(None)  # noqa: SLF001 (as `release` does)


async def _finish(
    conn: "PoolConnectionProxy[asyncpg.Record]", statement: Coroutine[object, object, None]
) -> None:
    """Commit or roll back; when cancelled meanwhile the outcome is unknown, so the connection is closed."""
    try:
        await statement
    except asyncio.CancelledError:
        conn.terminate()
        raise


async def _begin(
    server: Server, pool: Pool, begin: str | None
) -> tuple["PoolConnectionProxy[asyncpg.Record]", "Transaction | _StartedTransaction"]:
    """Begin on a live connection: before the first statement a lost one can be replaced."""
    deadline = asyncio.get_running_loop().time() + _SERVER_WAIT
    while True:
        try:
            conn = await pool.acquire()
        except LOST as error:
            await _wait_for_server(server, error, deadline)
            continue
        transaction = conn.transaction() if begin is None else _StartedTransaction(conn, begin)
        try:
            await transaction.start()
        except LOST as error:
            # asyncpg has already taken back a connection that closed.
            with suppress(asyncpg.InterfaceError):
                conn.terminate()
            await _release(conn)
            await _wait_for_server(server, error, deadline)
        except BaseException:
            # Cancelled between BEGIN and its response: a transaction may or may not be open.
            with suppress(asyncpg.InterfaceError):
                conn.terminate()
            await _release(conn)
            raise
        else:
            return conn, transaction


async def _wait_for_server(server: Server, error: Exception, deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise DatabaseUnavailable(
            f"PostgreSQL became unreachable and did not return: {error}"
        ) from error
    log.warning("PostgreSQL is unreachable", error=str(error))
    await server.started()
