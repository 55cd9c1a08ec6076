"""One connection: its type, its role, its time limits, its JSON."""

import asyncio
import socket
from collections.abc import Iterable
from typing import Any, ClassVar, Final, TypeAlias

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from trapline.settings import Settings

# Quoted, because asyncpg's classes are generic in their stubs alone.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
OwnConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

WORKER = "trapline_worker"
TENANT = "trapline_tenant"

# What asyncpg raises when the server closed a connection under us.
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
# And when there is no server to connect to, or it takes no more connections for now.
LOST = (OSError, *CUT_OFF, asyncpg.TooManyConnectionsError)

# The types in which statements of ours take many values: arrays of rows and of the usual scalars.
_ARRAYS = (
    "SELECT array_agg(t.typarray) FROM pg_catalog.pg_type t"
    " LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid"
    " WHERE t.typarray <> 0 AND (c.relkind = 'c' OR t.oid = ANY ('{bool,int2,int4,int8,float4,float8,"
    "text,uuid,bytea,jsonb,date,timestamptz,interval}'::regtype[]))"
)

# A batch of pages is some megabytes in one message. What the system takes of it at once, a busy process
# need not come back for: with the usual 200 KB it came back ten times, each time behind other work.
_SEND_BUFFER: Final = 4 * 1024 * 1024

_JSONB_VERSION = b"\x01"
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


class Session(asyncpg.Connection):
    """A pooled connection. Whatever we set, we set LOCAL, so there is nothing to reset on release."""

    # What the connections to one database have found out of the server's types, by their ids.
    types: ClassVar[dict[int, Any]]
    # The ids of those that are asked for together with the first one.
    arrays: ClassVar[list[int]]

    def __init__(self, protocol: Any, transport: asyncio.Transport, *more: Any) -> None:
        super().__init__(protocol, transport, *more)
        _widen(transport)

    def get_reset_query(self) -> str:
        return ""

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> Any:  # noqa: ASYNC109 (asyncpg's own)
        """Ask what types are made of once for all connections, and for all that we use at once.

        Else each connection asks anew for each statement; to plan that query takes the server 10 ms.
        """
        wanted = set(typeoids)
        if wanted <= self.types.keys():
            return list(self.types.values()), _Elsewhere()
        asked = wanted.union(self.arrays)
        rows, statement = await super()._introspect_types(asked, timeout)  # type: ignore[misc]
        self.types.update((row["oid"], row) for row in rows)
        return rows, statement

    def _drop_local_type_cache(self) -> None:
        self.types.clear()
        super()._drop_local_type_cache()  # type: ignore[misc]


def _widen(transport: asyncio.Transport) -> None:
    """Let the system take large messages whole. TCP sees to that by itself, and better."""
    own = transport.get_extra_info("socket")
    if own is not None and own.family == socket.AF_UNIX:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)


class _Elsewhere:
    """The statement that found types on another connection: it has disturbed none of this one's."""

    name = "elsewhere"


def session_class() -> type[Session]:
    """Return the class of one database's connections."""
    return type("Session", (Session,), {"types": {}, "arrays": []})


async def begin(conn: Connection, sessions: type[Session]) -> None:
    """Make a new connection of a pool ready."""
    await prepare(conn)
    # When a server goes, another one may come, with types of its own.
    conn.add_termination_listener(lambda _: sessions.types.clear())
    if not sessions.types:
        sessions.arrays = await conn.fetchval(_ARRAYS)


def session(settings: Settings, role: str | None = None) -> dict[str, str]:
    """Return the startup parameters of a connection of everyday work."""
    parameters = {
        "application_name": "trapline",
        "statement_timeout": _milliseconds(settings.statement_timeout),
        "idle_in_transaction_session_timeout": _milliseconds(settings.idle_in_transaction_timeout),
        "TimeZone": "UTC",
    }
    # As a startup parameter the role is the session's default: RESET ROLE does not leave it.
    return parameters | ({"role": role} if role else {})


def maintenance_session(settings: Settings) -> dict[str, str]:
    """Return the startup parameters for migrations, index builds and audits, as the owner."""
    return session(settings) | {
        "application_name": "trapline-maintenance",
        "statement_timeout": _milliseconds(settings.maintenance_timeout),
    }


async def prepare(conn: Connection) -> None:
    """Teach a new connection to carry jsonb as Python values."""
    await conn.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + _encode_json(value),
        decoder=lambda data: _decode_json(data[1:]),
        format="binary",
    )


async def connect(dsn: str, parameters: dict[str, str]) -> OwnConnection:
    """Open a connection that belongs to no pool; one that nobody gets is not left open."""
    conn = await asyncpg.connect(dsn, server_settings=parameters)
    try:
        await prepare(conn)
    except BaseException:
        conn.terminate()
        raise
    return conn


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
