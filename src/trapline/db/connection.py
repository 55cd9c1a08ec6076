"""One connection: its type, its role, its time limits, its JSON."""

from typing import TypeAlias

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

_JSONB_VERSION = b"\x01"
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


class Session(asyncpg.Connection):
    """A pooled connection. Whatever we set, we set LOCAL, so there is nothing to reset on release."""

    def get_reset_query(self) -> str:
        return ""


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


async def prepare(conn: OwnConnection) -> None:
    """Teach a new connection to carry jsonb as Python values."""
    await conn.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + _encode_json(value),
        decoder=lambda data: _decode_json(data[1:]),
        format="binary",
    )


async def connect(dsn: str, parameters: dict[str, str]) -> OwnConnection:
    """Open a connection that belongs to no pool."""
    conn = await asyncpg.connect(dsn, server_settings=parameters)
    await prepare(conn)
    return conn


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
