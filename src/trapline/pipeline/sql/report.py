"""Typed functions of report.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, TaskId


class CountEndsRow(Struct, frozen=True, gc=False):
    exit_code: int
    pages: int


class SlowestVisitsRow(Struct, frozen=True, gc=False):
    url: str
    took_ms: int


class FailedPagesRow(Struct, frozen=True, gc=False):
    url: str
    found_on: str | None
    code: int | None
    error: str


class PagesOfRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    url: str
    change: str | None
    status: int | None
    title: str | None
    language: str | None
    page_type: str | None
    fetched_at: datetime
    markdown: str
    text: str
    metadata: Any
    links: Any


_COUNT_ENDS: Final = """
-- name: CountEnds
SELECT v.exit_code, count(*) AS pages
FROM archive.visit v
JOIN queue.done d ON d.task_id = v.task_id AND (d.result ->> 'visit_id')::bigint = v.id
WHERE v.job_id = $1
GROUP BY v.exit_code
ORDER BY count(*) DESC, v.exit_code
"""


async def count_ends(conn: Connection, *, job_id: JobId) -> list[CountEndsRow]:
    """How the pages of a crawl ended, by exit code."""
    return [CountEndsRow(*row) for row in await conn.fetch(_COUNT_ENDS, job_id)]


_SLOWEST_VISITS: Final = """
-- name: SlowestVisits
SELECT u.url::text AS "url!", v.took_ms
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
WHERE v.job_id = $1
ORDER BY v.took_ms DESC
LIMIT $2::integer
"""


async def slowest_visits(conn: Connection, *, job_id: JobId, most: int) -> list[SlowestVisitsRow]:
    """The pages that took longest."""
    return [SlowestVisitsRow(*row) for row in await conn.fetch(_SLOWEST_VISITS, job_id, most)]


_FAILED_PAGES: Final = """
-- name: FailedPages
SELECT
    (t.payload ->> 'url')::text AS "url!",
    (t.payload ->> 'found_on')::text AS "found_on?",
    d.code AS "code?",
    d.error::text AS "error!"
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
WHERE t.job_id = $1 AND d.status = $2::smallint
ORDER BY t.id
LIMIT $3::integer
"""


async def failed_pages(
    conn: Connection, *, job_id: JobId, status: int, most: int
) -> list[FailedPagesRow]:
    """Pages that could not be had, with the first page that links to them."""
    return [FailedPagesRow(*row) for row in await conn.fetch(_FAILED_PAGES, job_id, status, most)]


_COUNT_REDIRECTS: Final = """
-- name: CountRedirects
SELECT count(*) AS redirects
FROM archive.visit v
JOIN archive.redirect r ON r.visit_id = v.id AND r.started_at = v.started_at
WHERE v.job_id = $1
"""


async def count_redirects(conn: Connection, *, job_id: JobId) -> int:
    """How many redirects a crawl met."""
    value: int = await conn.fetchval(_COUNT_REDIRECTS, job_id)
    return value


_PAGES_OF: Final = """
-- name: PagesOf
SELECT
    t.id AS task_id,
    (d.result ->> 'url')::text AS "url!",
    (d.result ->> 'change')::text AS "change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
WHERE t.job_id = $1 AND d.status = 0 AND t.id > $2::bigint
ORDER BY t.id
LIMIT $3::integer
"""


async def pages_of(conn: Connection, *, job_id: JobId, after: int, most: int) -> list[PagesOfRow]:
    """The pages of a crawl in the order in which they were finished, after a task."""
    return [PagesOfRow(*row) for row in await conn.fetch(_PAGES_OF, job_id, after, most)]
