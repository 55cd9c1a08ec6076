"""Typed functions of statistics.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId


class CountJobsRow(Struct, frozen=True, gc=False):
    kind: str
    status: str
    jobs: int


class JobsByHourRow(Struct, frozen=True, gc=False):
    hour: datetime
    created: int
    completed: int
    failed: int
    cancelled: int


class TallyDifferencesRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    status: str
    tally: int
    rows_say: int


class ThroughputSinceRow(Struct, frozen=True, gc=False):
    minute: datetime
    completed: int
    failed: int
    skipped: int


_COUNT_JOBS: Final = """
-- name: CountJobs
SELECT kind, status, sum(jobs)::bigint AS "jobs!"
FROM queue.job_tally
WHERE organisation_id = $1
    AND hour >= $2::timestamptz AND hour < $3::timestamptz
GROUP BY kind, status HAVING sum(jobs) <> 0
ORDER BY kind, status
"""


async def count_jobs(
    conn: Connection, *, organisation_id: OrganisationId, since: datetime, until: datetime
) -> list[CountJobsRow]:
    """An organisation's jobs by kind and status, created within whole hours."""
    return [
        CountJobsRow(*row) for row in await conn.fetch(_COUNT_JOBS, organisation_id, since, until)
    ]


_JOBS_BY_HOUR: Final = """
-- name: JobsByHour
SELECT hour, sum(jobs)::bigint AS "created!",
       coalesce(sum(jobs) FILTER (WHERE status = 'completed'), 0)::bigint AS "completed!",
       coalesce(sum(jobs) FILTER (WHERE status = 'failed'), 0)::bigint AS "failed!",
       coalesce(sum(jobs) FILTER (WHERE status = 'cancelled'), 0)::bigint AS "cancelled!"
FROM queue.job_tally
WHERE organisation_id = $1
    AND hour >= $2::timestamptz AND hour < $3::timestamptz
GROUP BY hour HAVING sum(jobs) <> 0
ORDER BY hour
"""


async def jobs_by_hour(
    conn: Connection, *, organisation_id: OrganisationId, since: datetime, until: datetime
) -> list[JobsByHourRow]:
    """An organisation's jobs by hour of creation: all, and those that ended."""
    return [
        JobsByHourRow(*row)
        for row in await conn.fetch(_JOBS_BY_HOUR, organisation_id, since, until)
    ]


_MERGE_TALLY: Final = """
-- name: MergeTally
WITH changed AS MATERIALIZED (
    SELECT DISTINCT t.organisation_id, t.hour, t.kind, t.status FROM (
        SELECT u.* FROM queue.job_tally u WHERE NOT u.folded ORDER BY u.id
        LIMIT $1::integer) t
),
gone AS (
    DELETE FROM queue.job_tally t USING changed c
    WHERE t.organisation_id = c.organisation_id AND t.hour = c.hour AND t.kind = c.kind
        AND t.status = c.status
    RETURNING t.*
),
kept AS (
    INSERT INTO queue.job_tally (organisation_id, hour, kind, status, jobs, folded)
    SELECT organisation_id, hour, kind, status, sum(jobs), true FROM gone
    GROUP BY 1, 2, 3, 4 HAVING sum(jobs) <> 0
)
SELECT count(*) FILTER (WHERE NOT folded) AS "rows!" FROM gone
"""


async def merge_tally(conn: Connection, *, most: int) -> int:
    """Merge all additions for an hour, kind and status into one row."""
    value: int = await conn.fetchval(_MERGE_TALLY, most)
    return value


_TALLY_DIFFERENCES: Final = """
-- name: TallyDifferences
SELECT coalesce(t.organisation_id, j.organisation_id) AS "organisation_id!",
       coalesce(t.status, j.status) AS "status!", coalesce(t.jobs, 0) AS "tally!",
       coalesce(j.jobs, 0) AS "rows_say!"
FROM (
    SELECT organisation_id, status, sum(jobs)::bigint AS jobs FROM queue.job_tally
    GROUP BY 1, 2 HAVING sum(jobs) <> 0
) t
FULL JOIN (SELECT organisation_id, status, count(*) AS jobs FROM queue.job GROUP BY 1, 2) j
    ON j.organisation_id = t.organisation_id AND j.status = t.status
WHERE t.jobs IS DISTINCT FROM j.jobs
ORDER BY 1, 2
"""


async def tally_differences(conn: Connection) -> list[TallyDifferencesRow]:
    """Organisations whose job counts differ from their jobs."""
    return [TallyDifferencesRow(*row) for row in await conn.fetch(_TALLY_DIFFERENCES)]


_THROUGHPUT_SINCE: Final = """
-- name: ThroughputSince
SELECT minute, sum(completed)::bigint AS "completed!", sum(failed)::bigint AS "failed!",
       sum(skipped)::bigint AS "skipped!"
FROM queue.statistic WHERE minute >= $1::timestamptz
GROUP BY minute ORDER BY minute
"""


async def throughput_since(conn: Connection, *, since: datetime) -> list[ThroughputSinceRow]:
    """The tasks of all organisations that ended in each minute."""
    return [ThroughputSinceRow(*row) for row in await conn.fetch(_THROUGHPUT_SINCE, since)]
