"""Typed functions of changes.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId


class ChangeRow(Struct, frozen=True, gc=False):
    id: int
    site_id: SiteId | None
    page_id: PageId | None
    url: str
    status: str
    source: str
    detected_at: datetime
    version_id: int | None
    previous_version_id: int | None
    job_id: JobId | None
    added_lines: int | None
    removed_lines: int | None
    added_words: int | None
    removed_words: int | None
    watch_id: str | None
    diff_summary: str | None
    snapshot_url: str | None
    rescrape_job_id: JobId | None
    rescrape_status: str | None
    indexed_at: datetime | None
    metadata: Any
    title: str | None
    version_number: int | None


class UnseenPagesRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    url_id: UrlId
    url: str


class FirstPageOfJobRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    page_id: PageId
    url_id: UrlId
    version_id: int | None


_LIST_CHANGES: Final = """
-- name: ListChanges
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.organisation_id = $1
    AND c.id < $2::bigint
    AND ($3::text IS NULL OR c.status = $3)
    AND ($4::text IS NULL OR c.source = $4)
    AND ($5::uuid IS NULL OR c.job_id = $5)
    AND ($6::timestamptz IS NULL OR c.detected_at >= $6)
    AND ($7::timestamptz IS NULL OR c.detected_at <= $7)
ORDER BY c.id DESC
LIMIT $8::integer
"""


async def list_changes(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    before: int,
    status: str | None,
    source: str | None,
    job_id: JobId | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> list[ChangeRow]:
    """Change events of an organisation before an id, newest first."""
    return [
        ChangeRow(*row)
        for row in await conn.fetch(
            _LIST_CHANGES, organisation_id, before, status, source, job_id, since, until, most
        )
    ]


_LIST_SITE_CHANGES: Final = """
-- name: ListSiteChanges
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.site_id = $1
    AND c.id < $2::bigint
    AND ($3::uuid IS NULL OR c.page_id = $3)
    AND ($4::text IS NULL OR c.status = $4)
    AND ($5::text IS NULL OR c.source = $5)
    AND ($6::uuid IS NULL OR c.job_id = $6)
    AND ($7::timestamptz IS NULL OR c.detected_at >= $7)
    AND ($8::timestamptz IS NULL OR c.detected_at <= $8)
ORDER BY c.id DESC
LIMIT $9::integer
"""


async def list_site_changes(
    conn: Connection,
    *,
    site_id: SiteId,
    before: int,
    page_id: PageId | None,
    status: str | None,
    source: str | None,
    job_id: JobId | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> list[ChangeRow]:
    """As ListChanges, of one site or of one of its pages."""
    return [
        ChangeRow(*row)
        for row in await conn.fetch(
            _LIST_SITE_CHANGES, site_id, before, page_id, status, source, job_id, since, until, most
        )
    ]


_LIST_CHANGES_OLDEST: Final = """
-- name: ListChangesOldest
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.organisation_id = $1
    AND c.id > $2::bigint
    AND ($3::text IS NULL OR c.status = $3)
    AND ($4::text IS NULL OR c.source = $4)
    AND ($5::uuid IS NULL OR c.job_id = $5)
    AND ($6::timestamptz IS NULL OR c.detected_at >= $6)
    AND ($7::timestamptz IS NULL OR c.detected_at <= $7)
ORDER BY c.id
LIMIT $8::integer
"""


async def list_changes_oldest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    after: int,
    status: str | None,
    source: str | None,
    job_id: JobId | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> list[ChangeRow]:
    """As ListChanges, after an id, oldest first."""
    return [
        ChangeRow(*row)
        for row in await conn.fetch(
            _LIST_CHANGES_OLDEST, organisation_id, after, status, source, job_id, since, until, most
        )
    ]


_LIST_SITE_CHANGES_OLDEST: Final = """
-- name: ListSiteChangesOldest
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.site_id = $1
    AND c.id > $2::bigint
    AND ($3::uuid IS NULL OR c.page_id = $3)
    AND ($4::text IS NULL OR c.status = $4)
    AND ($5::text IS NULL OR c.source = $5)
    AND ($6::uuid IS NULL OR c.job_id = $6)
    AND ($7::timestamptz IS NULL OR c.detected_at >= $7)
    AND ($8::timestamptz IS NULL OR c.detected_at <= $8)
ORDER BY c.id
LIMIT $9::integer
"""


async def list_site_changes_oldest(
    conn: Connection,
    *,
    site_id: SiteId,
    after: int,
    page_id: PageId | None,
    status: str | None,
    source: str | None,
    job_id: JobId | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> list[ChangeRow]:
    """As ListSiteChanges, after an id, oldest first."""
    return [
        ChangeRow(*row)
        for row in await conn.fetch(
            _LIST_SITE_CHANGES_OLDEST,
            site_id,
            after,
            page_id,
            status,
            source,
            job_id,
            since,
            until,
            most,
        )
    ]


_GET_CHANGE: Final = """
-- name: GetChange
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.id = $1
"""


async def get_change(conn: Connection, *, change_id: int) -> ChangeRow | None:
    """One change event."""
    row = await conn.fetchrow(_GET_CHANGE, change_id)
    return None if row is None else ChangeRow(*row)


_UNSEEN_PAGES: Final = """
-- name: UnseenPages
SELECT DISTINCT p.site_id, p.url_id, u.url::text AS "url!"
FROM archive.visit before
JOIN store.page p ON p.site_id = before.site_id AND p.url_id = before.url_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE before.job_id = $1
    AND before.site_id = $2
    AND p.organisation_id = $3
    AND p.gone_at IS NULL AND p.version_id IS NOT NULL
    AND p.last_seen_at < $4::timestamptz
    AND NOT EXISTS (
        SELECT FROM archive.visit now
        WHERE now.job_id = $5 AND now.url_id = p.url_id
    )
"""


async def unseen_pages(
    conn: Connection,
    *,
    earlier_job_id: JobId,
    site_id: SiteId,
    organisation_id: OrganisationId,
    started_at: datetime,
    job_id: JobId,
) -> list[UnseenPagesRow]:
    """Pages of an organisation that an earlier crawl saw and this one did not, and that no response marked as gone."""
    return [
        UnseenPagesRow(*row)
        for row in await conn.fetch(
            _UNSEEN_PAGES, earlier_job_id, site_id, organisation_id, started_at, job_id
        )
    ]


_SITES_OF_JOB: Final = """
-- name: SitesOfJob
SELECT DISTINCT site_id FROM archive.visit WHERE job_id = $1
"""


async def sites_of_job(conn: Connection, *, job_id: JobId) -> list[SiteId]:
    """The sites that a job visited."""
    return [row[0] for row in await conn.fetch(_SITES_OF_JOB, job_id)]


_COUNT_BLOCKING_FAILURES: Final = """
-- name: CountBlockingFailures
SELECT count(*) AS "failed!"
FROM queue.dead_letter d
JOIN queue.task t ON t.id = d.task_id
LEFT JOIN queue.done o ON o.task_id = d.task_id
WHERE d.job_id = $1
    AND NOT coalesce(o.code, 0) = ANY ($2::smallint[])
    AND (
        t.kind <> $3
        OR coalesce(o.code, 0) = ANY ($4::smallint[])
        OR EXISTS (
            SELECT FROM archive.visit v
            JOIN store.page p ON p.site_id = v.site_id AND p.url_id = v.url_id
            WHERE v.job_id = d.job_id AND v.task_id = d.task_id AND p.version_id IS NOT NULL
        )
    )
"""


async def count_blocking_failures(
    conn: Connection,
    *,
    job_id: JobId,
    harmless: Sequence[int],
    page_kind: str,
    passing: Sequence[int],
) -> int:
    """Number of tasks of a crawl whose failure may have hidden pages from it."""
    value: int = await conn.fetchval(_COUNT_BLOCKING_FAILURES, job_id, harmless, page_kind, passing)
    return value


_FIRST_PAGE_OF_JOB: Final = """
-- name: FirstPageOfJob
SELECT p.site_id, p.id AS page_id, p.url_id, p.version_id
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN store.page p ON p.id = (d.result ->> 'page_id')::uuid
WHERE t.job_id = $1
ORDER BY t.id LIMIT 1
"""


async def first_page_of_job(conn: Connection, *, job_id: JobId) -> FirstPageOfJobRow | None:
    """The page of a job that visits one page."""
    row = await conn.fetchrow(_FIRST_PAGE_OF_JOB, job_id)
    return None if row is None else FirstPageOfJobRow(*row)


_WAS_UNLINKED: Final = """
-- name: WasUnlinked
SELECT EXISTS (
    SELECT FROM frontier.url u
    JOIN store.page p ON p.url_id = u.id
    JOIN store.change c ON c.page_id = p.id
    WHERE u.organisation_id = $1 AND u.hash = $2
        AND c.source = 'sweep' AND c.status = 'removed'
        AND c.detected_at >= coalesce(p.returned_at, p.gone_at)
) AS "unlinked!"
"""


async def was_unlinked(
    conn: Connection, *, organisation_id: OrganisationId, url_hash: bytes
) -> bool:
    """Whether the last complete crawl did not find the page of a URL."""
    value: bool = await conn.fetchval(_WAS_UNLINKED, organisation_id, url_hash)
    return value
