"""Typed functions of crawl_report.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, PageId, SiteId, TaskId, UrlId


class CountExitCodesRow(Struct, frozen=True, gc=False):
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


class ExportJobPagesRow(Struct, frozen=True, gc=False):
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


class ExportFinishedPagesRow(Struct, frozen=True, gc=False):
    number: int
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


class ExportSitePagesRow(Struct, frozen=True, gc=False):
    page_id: PageId
    url_id: UrlId
    url: str
    first_seen_at: datetime
    last_seen_at: datetime
    changed_at: datetime | None
    number: int
    status: int | None
    title: str | None
    language: str | None
    page_type: str | None
    fetched_at: datetime
    markdown: str
    text: str
    metadata: Any
    links: Any


class RecentExitCodesRow(Struct, frozen=True, gc=False):
    exit_code: int
    visits: int
    mean_ms: float


class SlowVisitsRow(Struct, frozen=True, gc=False):
    url: str
    took_ms: int
    exit_code: int
    task_id: TaskId | None


class CompareVisitsRow(Struct, frozen=True, gc=False):
    id: int
    url: str
    exit_code: int
    took_ms: int
    task_id: TaskId | None
    other_exit_code: int | None
    other_took_ms: int | None
    content_hash: bytes | None
    other_content_hash: bytes | None
    page_id: PageId | None
    number: int | None
    other_number: int | None


_COUNT_EXIT_CODES: Final = """
-- name: CountExitCodes
SELECT v.exit_code, count(*) AS pages
FROM archive.visit v
JOIN queue.done d ON d.task_id = v.task_id AND (d.result ->> 'visit_id')::bigint = v.id
WHERE v.job_id = $1
GROUP BY v.exit_code
ORDER BY count(*) DESC, v.exit_code
"""


async def count_exit_codes(conn: Connection, *, job_id: JobId) -> list[CountExitCodesRow]:
    """Pages of a crawl by exit code."""
    return [CountExitCodesRow(*row) for row in await conn.fetch(_COUNT_EXIT_CODES, job_id)]


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
    """The visits that took longest."""
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
    """Failed pages, with the first page that links to them."""
    return [FailedPagesRow(*row) for row in await conn.fetch(_FAILED_PAGES, job_id, status, most)]


_COUNT_REDIRECTS: Final = """
-- name: CountRedirects
SELECT count(*) AS redirects
FROM archive.visit v
JOIN archive.redirect r ON r.visit_id = v.id AND r.started_at = v.started_at
WHERE v.job_id = $1
"""


async def count_redirects(conn: Connection, *, job_id: JobId) -> int:
    """Number of redirects in a crawl."""
    value: int = await conn.fetchval(_COUNT_REDIRECTS, job_id)
    return value


_EXPORT_JOB_PAGES: Final = """
-- name: ExportJobPages
SELECT
    chosen.task_id, chosen."url!", chosen."change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM (
    SELECT few.*, sum(few.bytes) OVER (ORDER BY few.task_id) - few.bytes AS before
    FROM (
        SELECT
            t.id AS task_id, v.id AS version_id,
            (d.result ->> 'url')::text AS "url!", (d.result ->> 'change')::text AS "change?",
            -- The stored size: no value is decompressed for it.
            pg_column_size(v.markdown) + pg_column_size(v.text) + pg_column_size(v.links) AS bytes
        FROM queue.task t
        JOIN queue.done d ON d.task_id = t.id
        JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
        WHERE t.job_id = $1 AND d.status = 0 AND t.id > $2::bigint
        ORDER BY t.id
        LIMIT $3::integer
    ) few
) chosen
JOIN store.version v ON v.id = chosen.version_id
WHERE chosen.before < $4::bigint
ORDER BY chosen.task_id
"""


async def export_job_pages(
    conn: Connection, *, job_id: JobId, after: int, most: int, bytes: int
) -> list[ExportJobPagesRow]:
    """Pages of a job after a task, in the order of tasks: a batch bounded by rows and by bytes."""
    return [
        ExportJobPagesRow(*row)
        for row in await conn.fetch(_EXPORT_JOB_PAGES, job_id, after, most, bytes)
    ]


_EXPORT_FINISHED_PAGES: Final = """
-- name: ExportFinishedPages
SELECT
    e.number, e.task_id AS "task_id!",
    coalesce(e.data ->> 'url', t.payload ->> 'url')::text AS "url!", (e.data ->> 'change')::text AS "change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM queue.event e
JOIN queue.task t ON t.id = e.task_id
JOIN store.version v ON v.id = (e.data ->> 'version_id')::bigint
WHERE e.job_id = $1 AND e.number > $2::bigint
    AND e.type = 'page' AND e.data ->> 'error' IS NULL
ORDER BY e.number LIMIT $3::integer
"""


async def export_finished_pages(
    conn: Connection, *, job_id: JobId, after: int, most: int
) -> list[ExportFinishedPagesRow]:
    """Pages of a job after an event, in the order in which they finished."""
    return [
        ExportFinishedPagesRow(*row)
        for row in await conn.fetch(_EXPORT_FINISHED_PAGES, job_id, after, most)
    ]


_EXPORT_SITE_PAGES: Final = """
-- name: ExportSitePages
SELECT
    chosen.page_id, chosen.url_id, u.url::text AS "url!", chosen.first_seen_at, chosen.last_seen_at,
    chosen.changed_at, v.number, v.status, v.title, v.language, v.page_type, v.fetched_at,
    v.markdown, v.text, v.metadata, v.links
FROM (
    SELECT few.*, sum(few.bytes) OVER (ORDER BY few.url_id) - few.bytes AS before
    FROM (
        SELECT
            p.id AS page_id, p.url_id, p.first_seen_at, p.last_seen_at, p.changed_at, p.version_id,
            pg_column_size(v.markdown) + pg_column_size(v.text) + pg_column_size(v.links) AS bytes
        FROM store.page p
        JOIN store.version v ON v.id = p.version_id
        WHERE p.site_id = $1 AND p.url_id > $2::bigint
            AND p.gone_at IS NULL
        ORDER BY p.url_id
        LIMIT $3::integer
    ) few
) chosen
JOIN store.version v ON v.id = chosen.version_id
JOIN frontier.url_text u ON u.id = chosen.url_id
WHERE chosen.before < $4::bigint
ORDER BY chosen.url_id
"""


async def export_site_pages(
    conn: Connection, *, site_id: SiteId, after: int, most: int, bytes: int
) -> list[ExportSitePagesRow]:
    """Pages of a site with their latest versions, after a URL id: a batch bounded by rows and by bytes."""
    return [
        ExportSitePagesRow(*row)
        for row in await conn.fetch(_EXPORT_SITE_PAGES, site_id, after, most, bytes)
    ]


_RECENT_EXIT_CODES: Final = """
-- name: RecentExitCodes
SELECT few.exit_code, count(*) AS "visits!", avg(few.took_ms)::double precision AS "mean_ms!"
FROM (
    SELECT v.exit_code, v.took_ms FROM archive.visit v
    WHERE v.job_id = $1 ORDER BY v.id DESC LIMIT $2::integer
) few
GROUP BY few.exit_code ORDER BY count(*) DESC, few.exit_code
"""


async def recent_exit_codes(
    conn: Connection, *, job_id: JobId, most: int
) -> list[RecentExitCodesRow]:
    """How the latest visits of a job ended, by exit code: of so many at most."""
    return [RecentExitCodesRow(*row) for row in await conn.fetch(_RECENT_EXIT_CODES, job_id, most)]


_SLOW_VISITS: Final = """
-- name: SlowVisits
SELECT u.url::text AS "url!", few.took_ms, few.exit_code, few.task_id
FROM (
    SELECT v.url_id, v.took_ms, v.exit_code, v.task_id FROM archive.visit v
    WHERE v.job_id = $1 ORDER BY v.id DESC LIMIT $2::integer
) few
JOIN frontier.url_text u ON u.id = few.url_id
ORDER BY few.took_ms DESC LIMIT $3::integer
"""


async def slow_visits(
    conn: Connection, *, job_id: JobId, among: int, most: int
) -> list[SlowVisitsRow]:
    """The slowest of a job's latest visits: of so many at most."""
    return [SlowVisitsRow(*row) for row in await conn.fetch(_SLOW_VISITS, job_id, among, most)]


_COMPARE_VISITS: Final = """
-- name: CompareVisits
SELECT
    few.id, u.url::text AS "url!", few.exit_code, few.took_ms, few.task_id,
    other.exit_code AS "other_exit_code?", other.took_ms AS "other_took_ms?",
    mine.content_hash AS "content_hash?", theirs.content_hash AS "other_content_hash?",
    mine.page_id AS "page_id?", mine.number AS "number?", theirs.number AS "other_number?"
FROM (
    SELECT v.id, v.url_id, v.exit_code, v.took_ms, v.task_id FROM archive.visit v
    WHERE v.job_id = $1 AND v.id > $2::bigint
    ORDER BY v.id LIMIT $3::integer
) few
JOIN frontier.url_text u ON u.id = few.url_id
LEFT JOIN LATERAL (
    SELECT v.exit_code, v.took_ms, v.task_id FROM archive.visit v
    WHERE v.url_id = few.url_id AND v.job_id = $4
    ORDER BY v.started_at DESC LIMIT 1
) other ON true
LEFT JOIN queue.done d ON d.task_id = few.task_id
LEFT JOIN store.version mine ON mine.id = (d.result ->> 'version_id')::bigint
LEFT JOIN queue.done o ON o.task_id = other.task_id
LEFT JOIN store.version theirs ON theirs.id = (o.result ->> 'version_id')::bigint
ORDER BY few.id
"""


async def compare_visits(
    conn: Connection, *, job_id: JobId, after: int, most: int, other_job_id: JobId
) -> list[CompareVisitsRow]:
    """A job's visits in their order, after one, each beside the visit of another job to the same URL."""
    return [
        CompareVisitsRow(*row)
        for row in await conn.fetch(_COMPARE_VISITS, job_id, after, most, other_job_id)
    ]
