"""Typed functions of monitor_checks.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId


class CheckSummariesRow(Struct, frozen=True, gc=False):
    job_id: JobId
    same: int
    changed: int
    new: int
    removed: int
    error: int


class CheckedPageRow(Struct, frozen=True, gc=False):
    place: int
    id: str
    url: str
    status: str
    status_code: int | None
    error: str | None
    version_id: int | None
    at: datetime


class TextsBeforeRow(Struct, frozen=True, gc=False):
    id: int
    markdown: str
    before: str


_CHECK_SUMMARIES: Final = """
-- name: CheckSummaries
SELECT
    s.job_id AS "job_id!",
    count(*) FILTER (WHERE s.status = 'same') AS "same!",
    count(*) FILTER (WHERE s.status = 'changed') AS "changed!",
    count(*) FILTER (WHERE s.status = 'new') AS "new!",
    count(*) FILTER (WHERE s.status = 'removed') AS "removed!",
    count(*) FILTER (WHERE s.status = 'error') AS "error!"
FROM (
    SELECT
        e.job_id,
        CASE
            WHEN (e.data ->> 'exit_code')::integer = ANY ($1::integer[]) THEN 'removed'
            WHEN e.data ->> 'error' IS NOT NULL OR (e.data ->> 'exit_code')::integer >= 20 THEN 'error'
            ELSE coalesce(e.data ->> 'change', 'same')
        END AS status
    FROM queue.event e
    WHERE e.job_id = ANY ($2::uuid[]) AND e.type = 'page'
        AND NOT (e.data ->> 'exit_code')::integer = ANY ($3::integer[])
    UNION ALL
    SELECT c.job_id, c.status
    FROM store.change c
    WHERE c.job_id = ANY ($2::uuid[]) AND c.source = 'sweep'
) s
GROUP BY s.job_id
"""


async def check_summaries(
    conn: Connection, *, gone: Sequence[int], job_ids: Sequence[JobId], skipped: Sequence[int]
) -> list[CheckSummariesRow]:
    """Counts of page states by job: pages with a visit, and pages that a complete crawl did not find."""
    return [
        CheckSummariesRow(*row)
        for row in await conn.fetch(_CHECK_SUMMARIES, gone, job_ids, skipped)
    ]


_CHECK_PAGES: Final = """
-- name: CheckPages
SELECT
    p.place AS "place!", p.id AS "id!", p.url AS "url!", p.status AS "status!",
    p.status_code AS "status_code?", p.error AS "error?", p.version_id AS "version_id?", p.at AS "at!"
FROM (
    SELECT
        e.number AS place, e.task_id::text AS id, (t.payload ->> 'url')::text AS url,
        CASE
            WHEN (e.data ->> 'exit_code')::integer = ANY ($1::integer[]) THEN 'removed'
            WHEN e.data ->> 'error' IS NOT NULL OR (e.data ->> 'exit_code')::integer >= 20 THEN 'error'
            ELSE coalesce(e.data ->> 'change', 'same')
        END AS status,
        (e.data ->> 'status')::integer AS status_code,
        (e.data ->> 'error')::text AS error,
        (e.data ->> 'version_id')::bigint AS version_id,
        e.created_at AS at
    FROM queue.event e JOIN queue.task t ON t.id = e.task_id
    WHERE e.job_id = $2 AND e.number > $3::bigint AND e.type = 'page'
        AND NOT (e.data ->> 'exit_code')::integer = ANY ($4::integer[])
) p
WHERE $5::text IS NULL OR p.status = $5
ORDER BY p.place
OFFSET $6::bigint LIMIT $7::integer
"""


async def check_pages(
    conn: Connection,
    *,
    gone: Sequence[int],
    job_id: JobId,
    after: int,
    skipped: Sequence[int],
    status: str | None,
    skip: int,
    most: int,
) -> list[CheckedPageRow]:
    """The visited pages of a job with their states, after an event."""
    return [
        CheckedPageRow(*row)
        for row in await conn.fetch(_CHECK_PAGES, gone, job_id, after, skipped, status, skip, most)
    ]


_COUNT_CHECK_PAGES: Final = """
-- name: CountCheckPages
SELECT count(*) FROM (
    SELECT CASE
        WHEN (e.data ->> 'exit_code')::integer = ANY ($1::integer[]) THEN 'removed'
        WHEN e.data ->> 'error' IS NOT NULL OR (e.data ->> 'exit_code')::integer >= 20 THEN 'error'
        ELSE coalesce(e.data ->> 'change', 'same')
    END AS status
    FROM queue.event e
    WHERE e.job_id = $2 AND e.type = 'page'
        AND NOT (e.data ->> 'exit_code')::integer = ANY ($3::integer[])
) p
WHERE $4::text IS NULL OR p.status = $4
"""


async def count_check_pages(
    conn: Connection,
    *,
    gone: Sequence[int],
    job_id: JobId,
    skipped: Sequence[int],
    status: str | None,
) -> int:
    """Number of pages that CheckPages returns."""
    value: int = await conn.fetchval(_COUNT_CHECK_PAGES, gone, job_id, skipped, status)
    return value


_MISSED_PAGES: Final = """
-- name: MissedPages
SELECT
    c.id AS "place!", ('change-' || c.id)::text AS "id!", u.url::text AS "url!", c.status AS "status!",
    NULL::integer AS "status_code?", NULL::text AS "error?", NULL::bigint AS "version_id?",
    c.detected_at AS "at!"
FROM store.change c JOIN frontier.url_text u ON u.id = c.url_id
WHERE c.job_id = $1 AND c.source = 'sweep' AND c.id > $2::bigint
    AND ($3::text IS NULL OR c.status = $3)
ORDER BY c.id
OFFSET $4::bigint LIMIT $5::integer
"""


async def missed_pages(
    conn: Connection, *, job_id: JobId, after: int, status: str | None, skip: int, most: int
) -> list[CheckedPageRow]:
    """Pages that a complete crawl did not find again, after an id."""
    return [
        CheckedPageRow(*row)
        for row in await conn.fetch(_MISSED_PAGES, job_id, after, status, skip, most)
    ]


_TEXTS_BEFORE: Final = """
-- name: TextsBefore
SELECT v.id, v.markdown::text AS "markdown!", b.markdown::text AS "before!"
FROM store.version v
JOIN LATERAL (
    SELECT b.markdown FROM store.version b
    WHERE b.page_id = v.page_id AND b.number < v.number AND b.variant = v.variant
    ORDER BY b.number DESC LIMIT 1
) b ON true
WHERE v.id = ANY ($1::bigint[])
"""


async def texts_before(conn: Connection, *, version_ids: Sequence[int]) -> list[TextsBeforeRow]:
    """The texts of versions and of their predecessors of the same variant."""
    return [TextsBeforeRow(*row) for row in await conn.fetch(_TEXTS_BEFORE, version_ids)]
