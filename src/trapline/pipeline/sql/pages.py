"""Typed functions of pages.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, TaskId, UrlId


class PagesOfJobRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    page_id: PageId
    site_id: SiteId
    url: str
    change: str | None
    finished_at: datetime
    version_id: int
    number: int
    title: str | None
    status: int | None
    content_hash: bytes


class PageRow(Struct, frozen=True, gc=False):
    page_id: PageId
    organisation_id: OrganisationId
    site_id: SiteId
    url_id: UrlId
    url: str
    url_hash: bytes
    first_seen_at: datetime
    last_seen_at: datetime
    changed_at: datetime | None
    gone_at: datetime | None
    version_id: int | None
    version_number: int
    content_hash: bytes | None
    title: str | None
    status: int | None
    language: str | None
    page_type: str | None
    similarity: int | None
    by_hand: bool
    duplicate_of: PageId | None


class ListVersionsRow(Struct, frozen=True, gc=False):
    version_id: int
    number: int
    visit_id: int
    job_id: JobId | None
    fetched_at: datetime
    content_hash: bytes
    extractor_version: int
    status: int | None
    title: str | None
    language: str | None
    page_type: str | None
    characters: int
    sha256: bytes | None


class VersionRow(Struct, frozen=True, gc=False):
    id: int
    organisation_id: OrganisationId
    page_id: PageId
    number: int
    visit_id: int
    job_id: JobId | None
    fetched_at: datetime
    content_hash: bytes
    extractor_version: int
    status: int | None
    content_type: str | None
    title: str | None
    language: str | None
    page_type: str | None
    text: str
    markdown: str
    metadata: Any
    links: Any
    warning: str | None
    sha256: bytes | None
    variant: bytes


class DocumentsOfRow(Struct, frozen=True, gc=False):
    number: int
    fetched_at: datetime
    sha256: bytes
    size: int
    place: str
    media_type: str | None


_PAGES_OF_ORGANISATION: Final = """
-- name: PagesOfOrganisation
SELECT p.id AS page_id
FROM store.page p
WHERE p.organisation_id = $1 AND p.id > $2::uuid
    AND ($3::timestamptz IS NULL OR p.last_seen_at >= $3)
    AND ($4::timestamptz IS NULL OR p.first_seen_at <= $4)
    AND ($5::boolean IS NULL OR (p.gone_at IS NOT NULL) = $5)
    AND ($6::boolean IS NULL OR $6 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.id
LIMIT $7::integer
"""


async def pages_of_organisation(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    after: UUID,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
    most: int,
) -> list[PageId]:
    """Ids of an organisation's pages after one, in the order of first sight."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_ORGANISATION,
            organisation_id,
            after,
            seen_since,
            seen_until,
            gone,
            duplicate,
            most,
        )
    ]


_PAGES_OF_ORGANISATION_NEWEST: Final = """
-- name: PagesOfOrganisationNewest
SELECT p.id AS page_id
FROM store.page p
WHERE p.organisation_id = $1 AND p.id < $2::uuid
    AND ($3::timestamptz IS NULL OR p.last_seen_at >= $3)
    AND ($4::timestamptz IS NULL OR p.first_seen_at <= $4)
    AND ($5::boolean IS NULL OR (p.gone_at IS NOT NULL) = $5)
    AND ($6::boolean IS NULL OR $6 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.id DESC
LIMIT $7::integer
"""


async def pages_of_organisation_newest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    before: UUID,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
    most: int,
) -> list[PageId]:
    """As PagesOfOrganisation, before one, newest first."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_ORGANISATION_NEWEST,
            organisation_id,
            before,
            seen_since,
            seen_until,
            gone,
            duplicate,
            most,
        )
    ]


_PAGES_OF_ORGANISATION_CHANGED: Final = """
-- name: PagesOfOrganisationChanged
SELECT p.id AS page_id
FROM store.page p
WHERE p.organisation_id = $1
    AND ((CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END), p.id)
        < ($2::timestamptz, $3::uuid)
    AND ($4::timestamptz IS NULL OR p.last_seen_at >= $4)
    AND ($5::timestamptz IS NULL OR p.first_seen_at <= $5)
    AND ($6::boolean IS NULL OR (p.gone_at IS NOT NULL) = $6)
    AND ($7::boolean IS NULL OR $7 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY (CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END) DESC, p.id DESC
LIMIT $8::integer
"""


async def pages_of_organisation_changed(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    before_at: datetime,
    before: UUID,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
    most: int,
) -> list[PageId]:
    """As PagesOfOrganisation, before a key, latest change first."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_ORGANISATION_CHANGED,
            organisation_id,
            before_at,
            before,
            seen_since,
            seen_until,
            gone,
            duplicate,
            most,
        )
    ]


_PAGES_OF_SITE: Final = """
-- name: PagesOfSite
SELECT p.id AS page_id
FROM store.page p
WHERE p.site_id = $1 AND p.url_id > $2::bigint
    AND ($3::timestamptz IS NULL OR p.last_seen_at >= $3)
    AND ($4::timestamptz IS NULL OR p.first_seen_at <= $4)
    AND ($5::boolean IS NULL OR (p.gone_at IS NOT NULL) = $5)
    AND ($6::boolean IS NULL OR $6 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.url_id
LIMIT $7::integer
"""


async def pages_of_site(
    conn: Connection,
    *,
    site_id: SiteId,
    after: int,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
    most: int,
) -> list[PageId]:
    """Ids of a site's pages after one, in the order of discovery."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_SITE, site_id, after, seen_since, seen_until, gone, duplicate, most
        )
    ]


_PAGES_OF_SITE_NEWEST: Final = """
-- name: PagesOfSiteNewest
SELECT p.id AS page_id
FROM store.page p
WHERE p.site_id = $1 AND p.url_id < $2::bigint
    AND ($3::timestamptz IS NULL OR p.last_seen_at >= $3)
    AND ($4::timestamptz IS NULL OR p.first_seen_at <= $4)
    AND ($5::boolean IS NULL OR (p.gone_at IS NOT NULL) = $5)
    AND ($6::boolean IS NULL OR $6 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.url_id DESC
LIMIT $7::integer
"""


async def pages_of_site_newest(
    conn: Connection,
    *,
    site_id: SiteId,
    before: int,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
    most: int,
) -> list[PageId]:
    """As PagesOfSite, before one, newest first."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_SITE_NEWEST, site_id, before, seen_since, seen_until, gone, duplicate, most
        )
    ]


_PAGES_OF_SITE_CHANGED: Final = """
-- name: PagesOfSiteChanged
SELECT p.id AS page_id
FROM store.page p
WHERE p.site_id = $1
    AND ((CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END), p.id)
        < ($2::timestamptz, $3::uuid)
    AND ($4::timestamptz IS NULL OR p.last_seen_at >= $4)
    AND ($5::timestamptz IS NULL OR p.first_seen_at <= $5)
    AND ($6::boolean IS NULL OR (p.gone_at IS NOT NULL) = $6)
    AND ($7::boolean IS NULL OR $7 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY (CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END) DESC, p.id DESC
LIMIT $8::integer
"""


async def pages_of_site_changed(
    conn: Connection,
    *,
    site_id: SiteId,
    before_at: datetime,
    before: UUID,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
    most: int,
) -> list[PageId]:
    """As PagesOfSite, before a key, latest change first."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_SITE_CHANGED,
            site_id,
            before_at,
            before,
            seen_since,
            seen_until,
            gone,
            duplicate,
            most,
        )
    ]


_PAGES_OF_URL: Final = """
-- name: PagesOfUrl
SELECT p.id AS page_id
FROM frontier.url u
JOIN store.page p ON p.url_id = u.id
WHERE u.organisation_id = $1 AND u.hash = $2
    AND ($3::uuid IS NULL OR p.site_id = $3)
    AND ($4::timestamptz IS NULL OR p.last_seen_at >= $4)
    AND ($5::timestamptz IS NULL OR p.first_seen_at <= $5)
    AND ($6::boolean IS NULL OR (p.gone_at IS NOT NULL) = $6)
    AND ($7::boolean IS NULL OR $7 = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.id
"""


async def pages_of_url(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    url_hash: bytes,
    site_id: SiteId | None,
    seen_since: datetime | None,
    seen_until: datetime | None,
    gone: bool | None,
    duplicate: bool | None,
) -> list[PageId]:
    """Ids of the pages of a URL, in all sites or in one."""
    return [
        row[0]
        for row in await conn.fetch(
            _PAGES_OF_URL,
            organisation_id,
            url_hash,
            site_id,
            seen_since,
            seen_until,
            gone,
            duplicate,
        )
    ]


_PAGES_OF_JOB: Final = """
-- name: PagesOfJob
SELECT
    t.id AS task_id, p.id AS page_id, p.site_id, (d.result ->> 'url')::text AS "url!",
    (d.result ->> 'change')::text AS "change?", d.finished_at, v.id AS version_id, v.number,
    v.title, v.status, v.content_hash
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
JOIN store.page p ON p.id = v.page_id
WHERE t.job_id = $1 AND t.id > $2::bigint
ORDER BY t.id
LIMIT $3::integer
"""


async def pages_of_job(
    conn: Connection, *, job_id: JobId, after: int, most: int
) -> list[PagesOfJobRow]:
    """Pages that a job saw after a task, in the order of tasks."""
    return [PagesOfJobRow(*row) for row in await conn.fetch(_PAGES_OF_JOB, job_id, after, most)]


_SHOW_PAGES: Final = """
-- name: ShowPages
SELECT
    p.id AS page_id, p.organisation_id, p.site_id, p.url_id, u.url::text AS "url!", u.hash AS "url_hash!",
    p.first_seen_at, p.last_seen_at, p.changed_at, p.gone_at, p.version_id, p.version_number,
    p.content_hash, v.title, v.status, v.language, v.page_type,
    l.similarity, coalesce(l.by_hand, false) AS "by_hand!", first.page_id AS "duplicate_of?"
FROM store.page p
JOIN frontier.url_text u ON u.id = p.url_id
LEFT JOIN store.version v ON v.id = p.version_id
LEFT JOIN store.likeness l ON l.page_id = p.id
LEFT JOIN LATERAL (
    SELECT o.page_id FROM store.likeness o
    WHERE o.site_id = l.site_id AND o.group_id = l.group_id
    ORDER BY o.by_hand, o.page_id LIMIT 1
) first ON first.page_id <> p.id
WHERE p.id = ANY ($1::uuid[])
"""


async def show_pages(conn: Connection, *, page_ids: Sequence[PageId]) -> list[PageRow]:
    """Pages with their latest versions."""
    return [PageRow(*row) for row in await conn.fetch(_SHOW_PAGES, page_ids)]


_LIST_VERSIONS: Final = """
-- name: ListVersions
SELECT
    id AS version_id, number, visit_id, job_id, fetched_at, content_hash, extractor_version, status,
    title, language, page_type, length(text) AS "characters!", sha256
FROM store.version
WHERE page_id = $1 AND number < $2::integer
ORDER BY number DESC
LIMIT $3::integer
"""


async def list_versions(
    conn: Connection, *, page_id: PageId, before: int, most: int
) -> list[ListVersionsRow]:
    """Versions of a page before a number, newest first, without content."""
    return [
        ListVersionsRow(*row) for row in await conn.fetch(_LIST_VERSIONS, page_id, before, most)
    ]


_GET_VERSION: Final = """
-- name: GetVersion
SELECT * FROM store.version WHERE page_id = $1 AND number = $2
"""


async def get_version(conn: Connection, *, page_id: PageId, number: int) -> VersionRow | None:
    """One version of a page by its number."""
    row = await conn.fetchrow(_GET_VERSION, page_id, number)
    return None if row is None else VersionRow(*row)


_VERSION_AT: Final = """
-- name: VersionAt
SELECT * FROM store.version
WHERE page_id = $1 AND fetched_at <= $2::timestamptz
ORDER BY number DESC LIMIT 1
"""


async def version_at(conn: Connection, *, page_id: PageId, at: datetime) -> VersionRow | None:
    """The version of a page that was current at a time."""
    row = await conn.fetchrow(_VERSION_AT, page_id, at)
    return None if row is None else VersionRow(*row)


_VERSION_BY_ID: Final = """
-- name: VersionById
SELECT * FROM store.version WHERE id = $1
"""


async def version_by_id(conn: Connection, *, version_id: int) -> VersionRow | None:
    """One version by its id."""
    row = await conn.fetchrow(_VERSION_BY_ID, version_id)
    return None if row is None else VersionRow(*row)


_DOCUMENTS_OF: Final = """
-- name: DocumentsOf
SELECT
    v.number, v.fetched_at, v.sha256 AS "sha256!", b.size, b.place,
    m.name AS "media_type?"
FROM store.version v
JOIN store.blob b ON b.sha256 = v.sha256
LEFT JOIN archive.file f ON f.visit_id = v.visit_id AND f.sha256 = v.sha256
LEFT JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE v.page_id = $1
ORDER BY v.number DESC
LIMIT $2::integer
"""


async def documents_of(conn: Connection, *, page_id: PageId, most: int) -> list[DocumentsOfRow]:
    """The documents of pages: the files that they link to, and their own bytes."""
    return [DocumentsOfRow(*row) for row in await conn.fetch(_DOCUMENTS_OF, page_id, most)]
