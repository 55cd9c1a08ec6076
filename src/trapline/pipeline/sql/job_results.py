"""Typed functions of job_results.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, TaskId


class CountPagesRow(Struct, frozen=True, gc=False):
    completed: int
    remaining: int
    failed: int
    skipped: int
    robots_blocked: bool


class PagesDoneRow(Struct, frozen=True, gc=False):
    number: int
    task_id: TaskId
    source_url: str
    url: str
    status: int | None
    version_id: int | None
    answers: Any
    warnings: Any
    change: str | None
    tracking: Any
    created_at: datetime


class PageFailuresRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    url: str
    code: int | None
    error: str
    failed_at: datetime


class LinksMappedRow(Struct, frozen=True, gc=False):
    number: int
    position: int
    url: str
    title: str | None
    description: str | None


class LatestPagesRow(Struct, frozen=True, gc=False):
    number: int
    task_id: TaskId
    created_at: datetime
    url: str
    status: int | None
    change: str | None
    error: str | None
    title: str | None
    page_id: PageId | None


class JobsOfUrlRow(Struct, frozen=True, gc=False):
    job_id: JobId
    visited_at: datetime


_COUNT_PAGES: Final = """
-- name: CountPages
SELECT
    j.completed - u.completed AS "completed!",
    j.remaining - u.remaining AS "remaining!",
    j.failed - u.failed AS "failed!",
    j.skipped - u.skipped AS "skipped!",
    -- Only for an ended job: the status of a running one is requested often.
    CASE WHEN j.status IN ('completed', 'failed') AND j.kind = 'crawl' THEN EXISTS (
        SELECT FROM queue.job_log l
        WHERE l.job_id = j.id AND l.created_at >= j.created_at AND l.step = $1
            AND l.context ->> 'url' IS NOT NULL)
    ELSE false END AS "robots_blocked!"
FROM queue.job j
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE d.status = 0) AS completed,
        count(*) FILTER (WHERE d.status = 1) AS failed,
        count(*) FILTER (WHERE d.status = 2) AS skipped,
        count(*) FILTER (WHERE d.status IS NULL AND j.status NOT IN ('completed', 'failed', 'cancelled'))
            AS remaining
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE t.job_id = j.id AND NOT t.counted
) u
WHERE j.id = $2
"""


async def count_pages(
    conn: Connection, *, refusing_step: str, job_id: JobId
) -> CountPagesRow | None:
    """Finished and remaining pages of a job: its counters without the tasks that visit no page."""
    row = await conn.fetchrow(_COUNT_PAGES, refusing_step, job_id)
    return None if row is None else CountPagesRow(*row)


_PAGES_DONE: Final = """
-- name: PagesDone
SELECT
    e.number,
    e.task_id AS "task_id!",
    (t.payload ->> 'url')::text AS "source_url!",
    coalesce(e.data ->> 'url', t.payload ->> 'url')::text AS "url!",
    (e.data ->> 'status')::integer AS "status?",
    (e.data ->> 'version_id')::bigint AS "version_id?",
    (e.data -> 'answers')::jsonb AS "answers?",
    (e.data -> 'warnings')::jsonb AS "warnings?",
    (e.data ->> 'change')::text AS "change?",
    (e.data -> 'tracking')::jsonb AS "tracking?",
    e.created_at
FROM queue.event e JOIN queue.task t ON t.id = e.task_id
WHERE e.job_id = $1 AND e.number > $2::bigint
    AND e.type = 'page' AND e.data ->> 'error' IS NULL
ORDER BY e.number
OFFSET $3::bigint LIMIT $4::integer
"""


async def pages_done(
    conn: Connection, *, job_id: JobId, after: int, skip: int, most: int
) -> list[PagesDoneRow]:
    """The visited pages of a job after an event, in the order in which they finished."""
    return [PagesDoneRow(*row) for row in await conn.fetch(_PAGES_DONE, job_id, after, skip, most)]


_PAGE_FAILURES: Final = """
-- name: PageFailures
SELECT
    d.task_id,
    (t.payload ->> 'url')::text AS "url!",
    d.code AS "code?",
    d.error::text AS "error!",
    d.failed_at
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = $1 AND t.counted
ORDER BY d.task_id LIMIT $2::integer
"""


async def page_failures(conn: Connection, *, job_id: JobId, most: int) -> list[PageFailuresRow]:
    """The failed pages of a job, oldest first."""
    return [PageFailuresRow(*row) for row in await conn.fetch(_PAGE_FAILURES, job_id, most)]


_PAGES_SKIPPED: Final = """
-- name: PagesSkipped
SELECT (t.payload ->> 'url')::text AS "url!"
FROM queue.event e JOIN queue.task t ON t.id = e.task_id
WHERE e.job_id = $1 AND e.type = 'page'
    AND (e.data ->> 'exit_code')::integer = $2::integer
ORDER BY e.number LIMIT $3::integer
"""


async def pages_skipped(conn: Connection, *, job_id: JobId, code: int, most: int) -> list[str]:
    """The URLs of a job that were skipped with one exit code."""
    return [row[0] for row in await conn.fetch(_PAGES_SKIPPED, job_id, code, most)]


_LINKS_REFUSED: Final = """
-- name: LinksRefused
SELECT DISTINCT (l.context ->> 'url')::text AS "url!"
FROM queue.job_log l JOIN queue.job j ON j.id = l.job_id
WHERE l.job_id = $1 AND l.created_at >= j.created_at AND l.step = $2
    AND l.context ->> 'url' IS NOT NULL
ORDER BY 1 LIMIT $3::integer
"""


async def links_refused(conn: Connection, *, job_id: JobId, step: str, most: int) -> list[str]:
    """The URLs of links that a job did not follow for one reason, from its log."""
    return [row[0] for row in await conn.fetch(_LINKS_REFUSED, job_id, step, most)]


_LINKS_MAPPED: Final = """
-- name: LinksMapped
SELECT e.number, link.position::integer AS "position!", (link.value ->> 'url')::text AS "url!",
    (link.value ->> 'title')::text AS "title?", (link.value ->> 'description')::text AS "description?"
FROM queue.event e
CROSS JOIN LATERAL jsonb_array_elements(e.data -> 'links') WITH ORDINALITY AS link (value, position)
WHERE e.job_id = $1 AND e.type = 'links' AND e.number >= $2::bigint
    AND (e.number, link.position) > ($2::bigint, $3::bigint)
ORDER BY e.number, link.position
LIMIT $4::integer
"""


async def links_mapped(
    conn: Connection, *, job_id: JobId, after_number: int, after_position: int, most: int
) -> list[LinksMappedRow]:
    """The URLs of a map after a key: the number of an event and a position in it."""
    return [
        LinksMappedRow(*row)
        for row in await conn.fetch(_LINKS_MAPPED, job_id, after_number, after_position, most)
    ]


_LATEST_PAGES: Final = """
-- name: LatestPages
SELECT
    e.number, e.task_id AS "task_id!", e.created_at,
    coalesce(e.data ->> 'url', t.payload ->> 'url')::text AS "url!",
    (e.data ->> 'status')::integer AS "status?",
    (e.data ->> 'change')::text AS "change?",
    (e.data ->> 'error')::text AS "error?",
    left(v.title, 300)::text AS "title?", v.page_id AS "page_id?"
FROM queue.event e
JOIN queue.task t ON t.id = e.task_id
LEFT JOIN store.version v ON v.id = (e.data ->> 'version_id')::bigint
WHERE e.job_id = $1 AND e.type = 'page'
ORDER BY e.number DESC LIMIT $2::integer
"""


async def latest_pages(conn: Connection, *, job_id: JobId, most: int) -> list[LatestPagesRow]:
    """The pages that a job finished last, newest first, with how each ended."""
    return [LatestPagesRow(*row) for row in await conn.fetch(_LATEST_PAGES, job_id, most)]


_JOBS_OF_URL: Final = """
-- name: JobsOfUrl
SELECT v.job_id AS "job_id!", max(v.started_at)::timestamptz AS "visited_at!"
FROM frontier.url u JOIN archive.visit v ON v.url_id = u.id
WHERE u.organisation_id = $1 AND u.hash = $2
    AND v.job_id IS NOT NULL
GROUP BY v.job_id ORDER BY 2 DESC LIMIT $3::integer
"""


async def jobs_of_url(
    conn: Connection, *, organisation_id: OrganisationId, url_hash: bytes, most: int
) -> list[JobsOfUrlRow]:
    """The jobs that visited a URL, the latest visit first."""
    return [
        JobsOfUrlRow(*row)
        for row in await conn.fetch(_JOBS_OF_URL, organisation_id, url_hash, most)
    ]
