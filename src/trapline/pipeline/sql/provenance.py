"""Typed functions of provenance.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, JobId, OrganisationId, PageId, SiteId, TaskId


class VisitsOfTaskRow(Struct, frozen=True, gc=False):
    id: int
    uuid: UUID
    started_at: datetime
    took_ms: int
    exit_code: int
    message: str | None
    agent_id: AgentId | None
    url: str


class RequestsOfVisitRow(Struct, frozen=True, gc=False):
    number: int
    url: str
    sent_at: datetime
    total_ms: float | None
    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    exit_code: int
    status: int | None
    remote_address: str | None
    robots_approved: bool


class RedirectsOfVisitRow(Struct, frozen=True, gc=False):
    number: int
    from_url: str
    to_url: str
    is_permanent: bool
    by_security_policy: bool


class HeadersOfVisitRow(Struct, frozen=True, gc=False):
    headers: Any
    size: int | None
    charset: str | None
    media_type: str


class PagesLinkingToRow(Struct, frozen=True, gc=False):
    page_id: PageId
    url: str
    title: str | None


class PagesOfUrlsRow(Struct, frozen=True, gc=False):
    url: str
    page_id: PageId
    gone_at: datetime | None


_VISITS_OF_TASK: Final = """
-- name: VisitsOfTask
SELECT v.id, v.uuid, v.started_at, v.took_ms, v.exit_code, v.message, v.agent_id,
       u.url::text AS "url!"
FROM archive.visit v JOIN frontier.url_text u ON u.id = v.url_id
WHERE v.job_id = $1 AND v.task_id = $2
    AND v.started_at >= $3::timestamptz
ORDER BY v.started_at, v.id LIMIT $4::integer
"""


async def visits_of_task(
    conn: Connection, *, job_id: JobId, task_id: TaskId, since: datetime, most: int
) -> list[VisitsOfTaskRow]:
    """The visits of a task, oldest first: one for each attempt that got as far as a request."""
    return [
        VisitsOfTaskRow(*row)
        for row in await conn.fetch(_VISITS_OF_TASK, job_id, task_id, since, most)
    ]


_REQUESTS_OF_VISIT: Final = """
-- name: RequestsOfVisit
SELECT r.number, u.url::text AS "url!", r.sent_at, r.total_ms, r.dns_ms, r.connect_ms, r.tls_ms,
       r.first_byte_ms, r.exit_code, r.status, r.remote_address, r.robots_approved
FROM archive.request r JOIN frontier.url_text u ON u.id = r.url_id
WHERE r.visit_id = $1 AND r.started_at = $2
ORDER BY r.number
"""


async def requests_of_visit(
    conn: Connection, *, visit_id: int, started_at: datetime
) -> list[RequestsOfVisitRow]:
    """The requests of a visit with their timings."""
    return [
        RequestsOfVisitRow(*row)
        for row in await conn.fetch(_REQUESTS_OF_VISIT, visit_id, started_at)
    ]


_REDIRECTS_OF_VISIT: Final = """
-- name: RedirectsOfVisit
SELECT r.number, a.url::text AS "from_url!", b.url::text AS "to_url!", r.is_permanent, r.by_security_policy
FROM archive.redirect r
JOIN frontier.url_text a ON a.id = r.url_id
JOIN frontier.url_text b ON b.id = r.to_url_id
WHERE r.visit_id = $1 AND r.started_at = $2
ORDER BY r.number
"""


async def redirects_of_visit(
    conn: Connection, *, visit_id: int, started_at: datetime
) -> list[RedirectsOfVisitRow]:
    """The redirects of a visit."""
    return [
        RedirectsOfVisitRow(*row)
        for row in await conn.fetch(_REDIRECTS_OF_VISIT, visit_id, started_at)
    ]


_HEADERS_OF_VISIT: Final = """
-- name: HeadersOfVisit
SELECT f.headers, f.size, f.charset, m.name AS media_type
FROM archive.file f JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE f.visit_id = $1 AND f.started_at = $2
LIMIT 1
"""


async def headers_of_visit(
    conn: Connection, *, visit_id: int, started_at: datetime
) -> HeadersOfVisitRow | None:
    """The response headers and the size of the body that a visit brought."""
    row = await conn.fetchrow(_HEADERS_OF_VISIT, visit_id, started_at)
    return None if row is None else HeadersOfVisitRow(*row)


_PAGES_LINKING_TO: Final = """
-- name: PagesLinkingTo
SELECT few.id AS page_id, u.url::text AS "url!", left(v.title, 300)::text AS "title?"
FROM (
    SELECT p.id, p.url_id, p.version_id FROM store.page p
    WHERE p.site_id = $1 AND p.gone_at IS NULL AND p.version_id IS NOT NULL
    ORDER BY (CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END) DESC, p.id DESC
    LIMIT $2::integer
) few
JOIN store.version v ON v.id = few.version_id
JOIN frontier.url_text u ON u.id = few.url_id
WHERE v.links @> jsonb_build_array($3::text) AND u.url <> $3::text
LIMIT $4::integer
"""


async def pages_linking_to(
    conn: Connection, *, site_id: SiteId, among: int, url: str, most: int
) -> list[PagesLinkingToRow]:
    """Pages of a site whose latest versions link to a URL: of so many that changed last."""
    return [
        PagesLinkingToRow(*row)
        for row in await conn.fetch(_PAGES_LINKING_TO, site_id, among, url, most)
    ]


_PAGES_OF_URLS: Final = """
-- name: PagesOfUrls
SELECT u.url::text AS "url!", p.id AS page_id, p.gone_at
FROM frontier.url x
JOIN store.page p ON p.url_id = x.id AND p.site_id = $1
JOIN frontier.url_text u ON u.id = x.id
WHERE x.organisation_id = $2 AND x.hash = ANY ($3::bytea[])
"""


async def pages_of_urls(
    conn: Connection,
    *,
    site_id: SiteId,
    organisation_id: OrganisationId,
    url_hashes: Sequence[bytes],
) -> list[PagesOfUrlsRow]:
    """The pages of a site that have these URLs."""
    return [
        PagesOfUrlsRow(*row)
        for row in await conn.fetch(_PAGES_OF_URLS, site_id, organisation_id, url_hashes)
    ]
