"""Typed functions of rollups.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from trapline.db.connection import Connection

_ROLL_UP_OPERATIONS: Final = """
-- name: RollUpOperations
INSERT INTO measure.operation_day AS d
    (organisation_id, day, type, name, operations, failures, milliseconds, slowest)
SELECT organisation_id, (recorded_at AT TIME ZONE 'UTC')::date, type, name, count(*), count(error),
       sum(milliseconds), max(milliseconds)
FROM measure.operation
WHERE recorded_at >= $1::timestamptz AND recorded_at < $2::timestamptz
GROUP BY 1, 2, 3, 4
ON CONFLICT (organisation_id, day, type, name) DO UPDATE
SET operations = d.operations + excluded.operations, failures = d.failures + excluded.failures,
    milliseconds = d.milliseconds + excluded.milliseconds,
    slowest = greatest(d.slowest, excluded.slowest)
"""


async def roll_up_operations(conn: Connection, *, since: datetime, until: datetime) -> int:
    """Add up the operations of some days."""
    return int((await conn.execute(_ROLL_UP_OPERATIONS, since, until)).rpartition(" ")[2])


_ROLL_UP_REQUESTS: Final = """
-- name: RollUpRequests
INSERT INTO measure.request_day AS d
    (organisation_id, day, method, route, status, requests, milliseconds, slowest)
SELECT organisation_id, (recorded_at AT TIME ZONE 'UTC')::date, method, route, status, count(*),
       sum(milliseconds), max(milliseconds)
FROM measure.request
WHERE recorded_at >= $1::timestamptz AND recorded_at < $2::timestamptz
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (organisation_id, day, method, route, status) DO UPDATE
SET requests = d.requests + excluded.requests,
    milliseconds = d.milliseconds + excluded.milliseconds,
    slowest = greatest(d.slowest, excluded.slowest)
"""


async def roll_up_requests(conn: Connection, *, since: datetime, until: datetime) -> int:
    """Add up the requests of some days."""
    return int((await conn.execute(_ROLL_UP_REQUESTS, since, until)).rpartition(" ")[2])
