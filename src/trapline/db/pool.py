"""Pools of connections, by role, and the only ways to get a transaction.

`system_tx` acts as the worker role, over all organisations; `tenant_tx` as the tenant role, for
one. LISTEN and advisory locks need a connection of their own: `dedicated`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from trapline.db import connection, embedded, migrate, requirements, roles
from trapline.db.connection import LOST, TENANT, WORKER, Connection, OwnConnection, Session
from trapline.db.standby import Pool, Standby
from trapline.errors import DatabaseUnavailable, Forbidden
from trapline.logs import get_logger
from trapline.model import MemberId, OrganisationId
from trapline.settings import Settings

log = get_logger(__name__)

# How long a transaction waits for a server that is away: a restart of PostgreSQL takes seconds.
_PATIENCE = 20.0
_PAUSE = 0.2
# Connections for claiming and finishing: two turns go on at a time, and beside them one batch is stored.
_STEADY = 3

# Both in one message: a transaction of a tenant begins as fast as any other.
_ENTER = (
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
    standby: Standby
    # For claiming and finishing alone, where there are enough connections for that.
    steady_pool: "Pool | None" = None

    @property
    def dsn(self) -> str:
        return self.server.dsn

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Database"]:
        """Start or find the server, bring its schema up to date, and connect."""
        async with server(settings) as found:
            async with owner(found.dsn, settings) as conn:
                await prepare(conn)
            async with cls.connect(found, settings) as database:
                yield database

    @classmethod
    @asynccontextmanager
    async def connect(cls, found: "Server", settings: Settings) -> AsyncIterator["Database"]:
        """Connect to a database whose schema is up to date."""
        async with AsyncExitStack() as stack:
            # API and CLI have few transactions at once; the rest is for the workers.
            tenants = max(1, settings.pool_size // 3)
            workers = settings.pool_size - tenants
            steady = _STEADY if workers >= 2 * _STEADY else 0
            sessions = connection.session_class()

            async def pool(role: str, size: int) -> Pool:
                opening = _pool(found.dsn, settings, sessions, role, size)
                return await stack.enter_async_context(opening)

            worker_pool = await pool(WORKER, workers - steady)
            tenant_pool = await pool(TENANT, tenants)
            steady_pool = await pool(WORKER, steady) if steady else None
            pools = [one for one in (worker_pool, tenant_pool, steady_pool) if one is not None]
            renewal = asyncio.create_task(_renew(pools, settings))
            stack.callback(renewal.cancel)
            standby = Standby(worker_pool)
            stack.push_async_callback(standby.aclose)
            yield cls(found, settings, worker_pool, tenant_pool, standby, steady_pool)

    def _system_pool(self, *, steady: bool) -> Pool:
        """Return the pool for the system's work.

        What is run all the time is steady: on connections of its own, each of which soon has all its
        plans. Else every other statement may push it to a new one, where PostgreSQL has to make
        them anew: that takes it a tenth of a second.
        """
        return self.steady_pool if steady and self.steady_pool is not None else self.worker_pool

    @asynccontextmanager
    async def system_tx(self, *, steady: bool = False) -> AsyncIterator[Connection]:
        """Open a transaction of the system itself, over all organisations."""
        async with _transaction(self.server, self._system_pool(steady=steady)) as conn:
            yield conn

    @asynccontextmanager
    async def system_statement(self, *, steady: bool = False) -> AsyncIterator[Connection]:
        """Lend a connection for one statement of the system, which is its own transaction.

        It saves the round trips of BEGIN and COMMIT. A server that is away is the caller's to wait for.
        """
        conn = await self._system_pool(steady=steady).acquire()
        try:
            yield conn
        finally:
            await _give_back(conn)

    async def statement(self, run: Callable[[Connection], Awaitable[T]]) -> T:
        """Run one statement of the system, or a few that only read, on a live connection.

        Each is its own transaction. When the connection is lost they run again on another one: that
        must do no harm.
        """
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            try:
                return await self.standby.run(run)
            except LOST as error:
                await _wait_for(self.server, error, deadline)

    @asynccontextmanager
    async def tenant_tx(
        self, organisation_id: OrganisationId, member_id: MemberId | None = None
    ) -> AsyncIterator[Connection]:
        """Open a transaction that sees one organisation's rows, as its key or as one member."""
        # Parsed once more, since they become a part of a statement.
        organisation, member = UUID(str(organisation_id)), member_id and UUID(str(member_id))
        begin = _ENTER.format(organisation=organisation, member=member or "")
        async with _transaction(self.server, self.tenant_pool, begin) as conn:
            if member_id is not None and not await conn.fetchval(
                "SELECT EXISTS (SELECT FROM tenancy.member WHERE id = $1)", member_id
            ):
                raise Forbidden("This member does not belong to that organisation.")
            yield conn

    async def dedicated(self) -> OwnConnection:
        """Open a connection outside the pools, for LISTEN and advisory locks. The caller closes."""
        return await connection.connect(self.dsn, connection.session(self.settings, WORKER))


class Server(Protocol):
    """A PostgreSQL: where it is, and how to wait until it takes connections."""

    @property
    def dsn(self) -> str: ...

    async def started(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ExternalServer:
    """A PostgreSQL that others run: when it is away, all we can do is try again."""

    dsn: str

    async def started(self) -> None:
        await asyncio.sleep(_PAUSE)


@asynccontextmanager
async def server(settings: Settings) -> AsyncIterator[Server]:
    """Yield the external PostgreSQL, or the embedded one, which runs as long as it is held."""
    external = settings.external_dsn()
    if external is not None:
        yield ExternalServer(external)
        return
    async with embedded.running(settings) as running:
        yield running


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
async def _pool(
    dsn: str, settings: Settings, sessions: type[Session], role: str, size: int
) -> AsyncIterator[Pool]:
    pool = asyncpg.create_pool(
        dsn,
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=settings.connection_max_idle,
        server_settings=connection.session(settings, role),
        init=lambda conn: connection.begin(conn, sessions),
        connection_class=sessions,
    )
    async with pool:
        yield pool


async def _renew(pools: Sequence[Pool], settings: Settings) -> None:
    """Replace connections by age, so that no backend keeps its memory for ever."""
    while True:
        await asyncio.sleep(settings.connection_max_age)
        for pool in pools:
            await pool.expire_connections()


@asynccontextmanager
async def _transaction(
    found: Server, pool: Pool, begin: str | None = None
) -> AsyncIterator[Connection]:
    conn, transaction = await _begin(found, pool, begin)
    try:
        yield conn
    except BaseException:
        # A lost connection has nothing to roll back, and why it was lost is the error to raise.
        with suppress(*LOST):
            await _end(conn, transaction.rollback())
        raise
    else:
        await _end(conn, transaction.commit())
    finally:
        await _give_back(conn)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A transaction that begins with a statement of its own."""

    conn: "PoolConnectionProxy[asyncpg.Record]"
    begin: str

    async def start(self) -> None:
        await self.conn.execute(self.begin)

    async def commit(self) -> None:
        await self.conn.execute("COMMIT")

    async def rollback(self) -> None:
        await self.conn.execute("ROLLBACK")


async def _give_back(conn: "PoolConnectionProxy[asyncpg.Record]") -> None:
    """Return a connection to its pool.

    asyncpg's own way makes a task of it, lest someone cancels it half-way. Ours have nothing to
    reset and so nothing to wait for; one that has is closed when that is cancelled.
    """
    # It takes a connection back by itself when it sees it close.
    if conn._con is not None:  # type: ignore[attr-defined]  # noqa: SLF001 (as its own way asks)
        await conn._holder.release(None)  # noqa: SLF001 (as its own way does)


async def _end(
    conn: "PoolConnectionProxy[asyncpg.Record]", ending: Coroutine[object, object, None]
) -> None:
    """Commit or roll back; when cancelled meanwhile, nobody knows which, and the connection goes."""
    try:
        await ending
    except asyncio.CancelledError:
        conn.terminate()
        raise


async def _begin(
    found: Server, pool: Pool, begin: str | None
) -> tuple["PoolConnectionProxy[asyncpg.Record]", "Transaction | _Begun"]:
    """Begin on a live connection: until the first statement has run, a lost one can be replaced."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        try:
            conn = await pool.acquire()
        except LOST as error:
            await _wait_for(found, error, deadline)
            continue
        transaction = conn.transaction() if begin is None else _Begun(conn, begin)
        try:
            await transaction.start()
        except LOST as error:
            # asyncpg takes a connection back by itself when it sees it close.
            with suppress(asyncpg.InterfaceError):
                conn.terminate()
            await _give_back(conn)
            await _wait_for(found, error, deadline)
        except BaseException:
            # Cancelled between BEGIN and its answer: nobody knows whether a transaction is open.
            with suppress(asyncpg.InterfaceError):
                conn.terminate()
            await _give_back(conn)
            raise
        else:
            return conn, transaction


async def _wait_for(found: Server, error: Exception, deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise DatabaseUnavailable(f"PostgreSQL went away and did not come back: {error}") from error
    log.warning("PostgreSQL is away", error=str(error))
    await found.started()
