"""Typed functions of rollups.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from trapline.db.connection import Connection

_ROLL_UP_JOB_LOG: Final = """
-- name: RollUpJobLog
INSERT INTO queue.job_log_day AS d (organisation_id, day, step, level, lines)
SELECT organisation_id, (created_at AT TIME ZONE 'UTC')::date, step, level, count(*)
FROM queue.job_log
WHERE created_at >= $1::timestamptz AND created_at < $2::timestamptz
GROUP BY 1, 2, 3, 4
ON CONFLICT (organisation_id, day, step, level) DO UPDATE SET lines = d.lines + excluded.lines
"""


async def roll_up_job_log(conn: Connection, *, since: datetime, until: datetime) -> int:
    """Count the log lines of days by step and level."""
    return int((await conn.execute(_ROLL_UP_JOB_LOG, since, until)).rpartition(" ")[2])


_ROLL_UP_STATISTICS: Final = """
-- name: RollUpStatistics
INSERT INTO queue.statistic_day AS d
    (day, kind, completed, failed, skipped, retried, stalled, seconds)
SELECT (minute AT TIME ZONE 'UTC')::date, kind, sum(completed), sum(failed), sum(skipped),
       sum(retried), sum(stalled), sum(seconds)
FROM queue.statistic
WHERE minute >= $1::timestamptz AND minute < $2::timestamptz
GROUP BY 1, 2
ON CONFLICT (day, kind) DO UPDATE
SET completed = d.completed + excluded.completed, failed = d.failed + excluded.failed,
    skipped = d.skipped + excluded.skipped, retried = d.retried + excluded.retried,
    stalled = d.stalled + excluded.stalled, seconds = d.seconds + excluded.seconds
"""


async def roll_up_statistics(conn: Connection, *, since: datetime, until: datetime) -> int:
    """Sum the minutes of days by kind."""
    return int((await conn.execute(_ROLL_UP_STATISTICS, since, until)).rpartition(" ")[2])
