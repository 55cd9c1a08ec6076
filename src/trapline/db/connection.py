"""One connection: its type, role, time-outs and JSON codec."""

import asyncio
import socket
from collections.abc import Iterable
from typing import Any, ClassVar, Final, TypeAlias

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from trapline.settings import DatabaseSettings

# Quoted, because asyncpg's classes are generic in their stubs alone.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
OwnConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

WORKER = "trapline_worker"
TENANT = "trapline_tenant"

# Raised by asyncpg when the server closed a connection in use.
CUT_OFF = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    # A connection that is closed between two messages of one exchange.
    asyncpg.InternalClientError,
)
# Also raised when no server is reachable, or it takes no more connections for now.
LOST = (OSError, *CUT_OFF, asyncpg.TooManyConnectionsError)
# Raised by a server that has no disk space or memory left: the same statement succeeds later.
EXHAUSTED = (asyncpg.InsufficientResourcesError, asyncpg.PostgresIOError)

# The array types of our parameters: arrays of composite rows and of the usual scalars.
_ARRAYS = (
    "SELECT array_agg(t.typarray) FROM pg_catalog.pg_type t"
    " LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid"
    " WHERE t.typarray <> 0 AND (c.relkind = 'c' OR t.oid = ANY ('{bool,int2,int4,int8,float4,float8,"
    "text,uuid,bytea,jsonb,date,timestamptz,interval}'::regtype[]))"
)

# A batch of pages is one message of some megabytes. With the usual buffer of 200 KB the event loop had
# to resume sending ten times, each time behind other work.
_SEND_BUFFER: Final = 4 * 1024 * 1024

_JSONB_VERSION = b"\x01"
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


class PooledConnection(asyncpg.Connection):
    """A pooled connection. Everything is SET LOCAL, so there is nothing to reset on release."""

    # The introspected types of one database, by oid, shared by its connections.
    types: ClassVar[dict[int, Any]]
    # The oids to introspect together with the first one.
    arrays: ClassVar[list[int]]

    def __init__(self, protocol: Any, transport: asyncio.Transport, *more: Any) -> None:
        super().__init__(protocol, transport, *more)
        _enlarge_send_buffer(transport)

    def get_reset_query(self) -> str:
        return ""

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> Any:  # noqa: ASYNC109 (asyncpg's own)
        """Introspect types once for all connections, and all that we use at once.

        asyncpg would do so for each connection and statement; planning that query takes 10 ms.
        """
        missing = set(typeoids)
        if missing <= self.types.keys():
            return list(self.types.values()), _CachedIntrospection()
        rows, statement = await super()._introspect_types(missing.union(self.arrays), timeout)  # type: ignore[misc]
        self.types.update((row["oid"], row) for row in rows)
        return rows, statement

    def _drop_local_type_cache(self) -> None:
        self.types.clear()
        super()._drop_local_type_cache()  # type: ignore[misc]


def _enlarge_send_buffer(transport: asyncio.Transport) -> None:
    """Let the kernel take large messages whole. TCP tunes its buffers itself, and better."""
    unix = transport.get_extra_info("socket")
    if unix is not None and unix.family == socket.AF_UNIX:
        unix.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)


class _CachedIntrospection:
    """Stands for the introspection statement that ran on another connection."""

    name = "cached"


def connection_class() -> type[PooledConnection]:
    """Return the connection class of one database."""
    return type("PooledConnection", (PooledConnection,), {"types": {}, "arrays": []})


async def initialise(conn: Connection, sessions: type[PooledConnection]) -> None:
    """Prepare a new connection of a pool."""
    await prepare(conn)
    # After a failover another server may have other type oids.
    conn.add_termination_listener(lambda _: sessions.types.clear())
    if not sessions.types:
        sessions.arrays = await conn.fetchval(_ARRAYS)


def session_parameters(
    settings: DatabaseSettings, role: str | None = None, *, purpose: str | None = None
) -> dict[str, str]:
    """Return the startup parameters of a normal connection; pg_stat_activity shows its purpose."""
    parameters = {
        "application_name": "trapline" if purpose is None else f"trapline {purpose}",
        "statement_timeout": _milliseconds(settings.statement_timeout),
        "idle_in_transaction_session_timeout": _milliseconds(settings.idle_in_transaction_timeout),
        "TimeZone": "UTC",
    }
    # As a startup parameter the role is the session's default: RESET ROLE keeps it.
    return parameters | ({"role": role} if role else {})


def maintenance_parameters(settings: DatabaseSettings) -> dict[str, str]:
    """Return the startup parameters for migrations, index builds and audits, as the owner."""
    return session_parameters(settings) | {
        "application_name": "trapline-maintenance",
        "statement_timeout": _milliseconds(settings.maintenance_timeout),
    }


async def prepare(conn: Connection) -> None:
    """Make a new connection encode and decode jsonb as Python values."""
    await conn.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + _encode_json(value),
        decoder=lambda data: _decode_json(data[1:]),
        format="binary",
    )


async def connect(dsn: str, parameters: dict[str, str]) -> OwnConnection:
    """Open a connection outside the pools; it is closed if preparing it fails."""
    conn = await asyncpg.connect(dsn, server_settings=parameters)
    try:
        await prepare(conn)
    except BaseException:
        conn.terminate()
        raise
    return conn


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
