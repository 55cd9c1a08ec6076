"""Typed functions of robots.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class RobotsRow(Struct, frozen=True, gc=False):
    origin: str
    fetched_at: datetime
    expires_at: datetime
    status: int | None
    exit_code: int
    body: bytes


_FRESH_ROBOTS: Final = """
-- name: FreshRobots
SELECT * FROM frontier.robots
WHERE origin = $1 AND expires_at > $2
"""


async def fresh_robots(conn: Connection, *, origin: str, now: datetime) -> RobotsRow | None:
    """The robots.txt of an origin, if it was read not too long ago."""
    row = await conn.fetchrow(_FRESH_ROBOTS, origin, now)
    return None if row is None else RobotsRow(*row)


_KEEP_ROBOTS: Final = """
-- name: KeepRobots
INSERT INTO frontier.robots AS r (origin, fetched_at, expires_at, status, exit_code, body)
VALUES (
    $1, $2, $3,
    $4, $5, $6
)
ON CONFLICT (origin) DO UPDATE SET
    fetched_at = excluded.fetched_at,
    expires_at = excluded.expires_at,
    status = excluded.status,
    exit_code = excluded.exit_code,
    body = excluded.body
WHERE r.fetched_at < excluded.fetched_at
"""


async def keep_robots(
    conn: Connection,
    *,
    origin: str,
    fetched_at: datetime,
    expires_at: datetime,
    status: int | None,
    exit_code: int,
    body: bytes,
) -> None:
    """Remember the robots.txt of an origin; the newer reading wins."""
    await conn.execute(_KEEP_ROBOTS, origin, fetched_at, expires_at, status, exit_code, body)
