"""Typed functions of efficiency.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class EfficiencySinceRow(Struct, frozen=True, gc=False):
    kind: str
    completed: int
    failed: int
    skipped: int
    retried: int
    stalled: int
    mean_seconds: float


class RatesSinceRow(Struct, frozen=True, gc=False):
    hour: datetime
    created: int
    ended: int | None


_EFFICIENCY_SINCE: Final = """
-- name: EfficiencySince
SELECT kind, sum(completed)::bigint AS "completed!", sum(failed)::bigint AS "failed!",
    sum(skipped)::bigint AS "skipped!", sum(retried)::bigint AS "retried!",
    sum(stalled)::bigint AS "stalled!",
    coalesce(sum(seconds) / nullif(sum(completed + failed + skipped + retried), 0), 0)
        ::double precision AS "mean_seconds!"
FROM queue.statistic WHERE minute >= $1::timestamptz
GROUP BY kind ORDER BY kind
"""


async def efficiency_since(conn: Connection, *, since: datetime) -> list[EfficiencySinceRow]:
    """Outcomes of tasks by kind, with their mean time."""
    return [EfficiencySinceRow(*row) for row in await conn.fetch(_EFFICIENCY_SINCE, since)]


_RATES_SINCE: Final = """
-- name: RatesSince
SELECT hour, sum(jobs)::bigint AS "created!",
    (sum(jobs) FILTER (WHERE status IN ('completed', 'failed', 'cancelled')))::bigint AS "ended?"
FROM queue.job_tally WHERE hour >= $1::timestamptz
GROUP BY hour HAVING sum(jobs) > 0 ORDER BY hour
"""


async def rates_since(conn: Connection, *, since: datetime) -> list[RatesSinceRow]:
    """Jobs created and ended, by hour of creation."""
    return [RatesSinceRow(*row) for row in await conn.fetch(_RATES_SINCE, since)]
