"""Typed functions of report.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, PageId, SiteId, TaskId, UrlId


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


class PagesOfSiteRow(Struct, frozen=True, gc=False):
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
    chosen.task_id, chosen."url!", chosen."change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM (
    SELECT few.*, sum(few.bytes) OVER (ORDER BY few.task_id) - few.bytes AS before
    FROM (
        SELECT
            t.id AS task_id, v.id AS version_id,
            (d.result ->> 'url')::text AS "url!", (d.result ->> 'change')::text AS "change?",
            -- As it is stored: nothing is unpacked for this.
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


async def pages_of(
    conn: Connection, *, job_id: JobId, after: int, most: int, bytes: int
) -> list[PagesOfRow]:
    """The pages of a crawl in the order of its tasks, after one: so many, or fewer if they are large."""
    return [PagesOfRow(*row) for row in await conn.fetch(_PAGES_OF, job_id, after, most, bytes)]


_PAGES_OF_SITE: Final = """
-- name: PagesOfSite
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


async def pages_of_site(
    conn: Connection, *, site_id: SiteId, after: int, most: int, bytes: int
) -> list[PagesOfSiteRow]:
    """The pages that a site has, with their latest versions, in the order in which their URLs were found, after one: so many, or fewer if they are large."""
    return [
        PagesOfSiteRow(*row)
        for row in await conn.fetch(_PAGES_OF_SITE, site_id, after, most, bytes)
    ]
