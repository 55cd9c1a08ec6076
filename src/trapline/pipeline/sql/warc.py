"""Typed functions of warc.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, SiteId, UrlId


class ExportedVisit(Struct, frozen=True, gc=False):
    id: int
    uuid: UUID
    job_id: JobId | None
    started_at: datetime
    took_ms: int
    exit_code: int
    message: str | None
    url: str
    agent: str | None
    user_agent: str | None
    file_url: str | None
    media_type: str | None
    headers: Any
    file_request: int | None
    sha256: bytes | None


class RequestsOfRow(Struct, frozen=True, gc=False):
    visit_id: int
    number: int
    sent_at: datetime
    total_ms: float | None
    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    robots_approved: bool
    exit_code: int
    status: int | None
    etag: str | None
    last_modified: datetime | None
    remote_address: str | None
    url: str
    redirected_to: str | None


class SeenSinceRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    url_id: UrlId


_VISITS_OF_JOB: Final = """
-- name: VisitsOfJob
SELECT
    v.id, v.uuid, v.job_id, v.started_at, v.took_ms, v.exit_code, v.message,
    u.url::text AS "url!", a.name AS "agent?", a.user_agent AS "user_agent?",
    fu.url::text AS "file_url?", m.name AS "media_type?", f.headers AS "headers?",
    f.request_number AS "file_request?", f.sha256 AS "sha256?"
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
LEFT JOIN queue.agent a ON a.id = v.agent_id
LEFT JOIN archive.file f ON f.started_at = v.started_at AND f.visit_id = v.id
LEFT JOIN frontier.url_text fu ON fu.id = f.url_id
LEFT JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE v.job_id = $1 AND v.id > $2::bigint
ORDER BY v.id
LIMIT $3::integer
"""


async def visits_of_job(
    conn: Connection, *, job_id: JobId, after: int, most: int
) -> list[ExportedVisit]:
    """Visits of a job with their files, after an id."""
    return [ExportedVisit(*row) for row in await conn.fetch(_VISITS_OF_JOB, job_id, after, most)]


_VISITS_IN_ORDER: Final = """
-- name: VisitsInOrder
SELECT
    v.id, v.uuid, v.job_id, v.started_at, v.took_ms, v.exit_code, v.message,
    u.url::text AS "url!", a.name AS "agent?", a.user_agent AS "user_agent?",
    fu.url::text AS "file_url?", m.name AS "media_type?", f.headers AS "headers?",
    f.request_number AS "file_request?", f.sha256 AS "sha256?"
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
LEFT JOIN queue.agent a ON a.id = v.agent_id
LEFT JOIN archive.file f ON f.started_at = v.started_at AND f.visit_id = v.id
LEFT JOIN frontier.url_text fu ON fu.id = f.url_id
LEFT JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE ($1::uuid IS NULL OR v.site_id = $1)
  AND (v.started_at, v.id) > ($2::timestamptz, $3::bigint)
ORDER BY v.started_at, v.id
LIMIT $4::integer
"""


async def visits_in_order(
    conn: Connection, *, site_id: SiteId | None, after_at: datetime, after: int, most: int
) -> list[ExportedVisit]:
    """All visits, or those of a site, after a key in the order of time."""
    return [
        ExportedVisit(*row)
        for row in await conn.fetch(_VISITS_IN_ORDER, site_id, after_at, after, most)
    ]


_REQUESTS_OF: Final = """
-- name: RequestsOf
SELECT
    r.visit_id, r.number, r.sent_at, r.total_ms, r.dns_ms, r.connect_ms, r.tls_ms, r.first_byte_ms,
    r.robots_approved, r.exit_code, r.status, r.etag, r.last_modified, r.remote_address,
    u.url::text AS "url!", t.url::text AS "redirected_to?"
FROM unnest($1::timestamptz[], $2::bigint[])
    AS wanted (started_at, visit_id)
JOIN archive.request r USING (started_at, visit_id)
JOIN frontier.url_text u ON u.id = r.url_id
LEFT JOIN archive.redirect d
    ON d.started_at = r.started_at AND d.visit_id = r.visit_id AND d.request_number = r.number
   AND d.source = 1
LEFT JOIN frontier.url_text t ON t.id = d.to_url_id
ORDER BY r.visit_id, r.number
"""


async def requests_of(
    conn: Connection, *, started_ats: Sequence[datetime], visit_ids: Sequence[int]
) -> list[RequestsOfRow]:
    """The requests of visits, each with the target of its redirect."""
    return [RequestsOfRow(*row) for row in await conn.fetch(_REQUESTS_OF, started_ats, visit_ids)]


_SEEN_SINCE: Final = """
-- name: SeenSince
SELECT p.site_id, p.url_id
FROM unnest(
    $1::uuid[], $2::bigint[], $3::timestamptz[]
) AS imported (site_id, url_id, at)
JOIN store.page p USING (site_id, url_id)
WHERE p.last_seen_at > imported.at
"""


async def seen_since(
    conn: Connection,
    *,
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    ats: Sequence[datetime],
) -> list[SeenSinceRow]:
    """Pages that were seen after these times: an older capture must not replace them."""
    return [SeenSinceRow(*row) for row in await conn.fetch(_SEEN_SINCE, site_ids, url_ids, ats)]


_SITE_NAMED: Final = """
-- name: SiteNamed
SELECT id FROM store.site
WHERE id::text = $1 OR name_key = lower($1) OR base_url = $1
ORDER BY implicit, variant
LIMIT 1
"""


async def site_named(conn: Connection, *, named: str) -> SiteId | None:
    """The site with this id, name or base URL."""
    value: SiteId | None = await conn.fetchval(_SITE_NAMED, named)
    return value
