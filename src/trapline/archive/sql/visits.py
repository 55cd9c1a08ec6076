"""Typed functions of visits.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, JobId, OrganisationId, SiteId, TaskId, UrlId


class MimetypeRow(Struct, frozen=True, gc=False):
    id: int
    name: str


class AddVisitsRow(Struct, frozen=True, gc=False):
    id: int
    uuid: UUID


_INTERN_MIMETYPES: Final = """
-- name: InternMimetypes
INSERT INTO archive.mimetype (name)
SELECT DISTINCT name FROM unnest($1::text[]) AS name
ORDER BY name
ON CONFLICT DO NOTHING
"""


async def intern_mimetypes(conn: Connection, *, names: Sequence[str]) -> None:
    """Make sure that every media type has its row."""
    await conn.execute(_INTERN_MIMETYPES, names)


_FIND_MIMETYPES: Final = """
-- name: FindMimetypes
SELECT id, name FROM archive.mimetype WHERE name = ANY ($1::text[])
"""


async def find_mimetypes(conn: Connection, *, names: Sequence[str]) -> list[MimetypeRow]:
    """The ids of media types."""
    return [MimetypeRow(*row) for row in await conn.fetch(_FIND_MIMETYPES, names)]


_ADD_VISITS: Final = """
-- name: AddVisits
INSERT INTO archive.visit (
    organisation_id, uuid, agent_id, job_id, task_id, site_id, url_id,
    crawl_type, started_at, took_ms, exit_code, message
)
SELECT *
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::bigint[],
    $4::uuid[],
    $5::bigint[],
    $6::uuid[],
    $7::bigint[],
    $8::smallint[],
    $9::timestamptz[],
    $10::integer[],
    $11::smallint[],
    $12::text[]
)
RETURNING id, uuid
"""


async def add_visits(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    uuids: Sequence[UUID],
    agent_ids: Sequence[AgentId | None] | None,
    job_ids: Sequence[JobId | None] | None,
    task_ids: Sequence[TaskId | None] | None,
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    crawl_types: Sequence[int],
    started_ats: Sequence[datetime],
    took_mss: Sequence[int],
    exit_codes: Sequence[int],
    messages: Sequence[str | None] | None,
) -> list[AddVisitsRow]:
    """Write finished visits; the uuid tells which id belongs to which."""
    return [
        AddVisitsRow(*row)
        for row in await conn.fetch(
            _ADD_VISITS,
            organisation_ids,
            uuids,
            agent_ids,
            job_ids,
            task_ids,
            site_ids,
            url_ids,
            crawl_types,
            started_ats,
            took_mss,
            exit_codes,
            messages,
        )
    ]


_ADD_REQUESTS: Final = """
-- name: AddRequests
INSERT INTO archive.request (
    visit_id, started_at, number, organisation_id, url_id, sent_at, total_ms, dns_ms, connect_ms,
    tls_ms, first_byte_ms, robots_approved, exit_code, status, etag, last_modified, remote_address
)
SELECT *
FROM unnest(
    $1::bigint[],
    $2::timestamptz[],
    $3::smallint[],
    $4::uuid[],
    $5::bigint[],
    $6::timestamptz[],
    $7::real[],
    $8::real[],
    $9::real[],
    $10::real[],
    $11::real[],
    $12::boolean[],
    $13::smallint[],
    $14::smallint[],
    $15::text[],
    $16::timestamptz[],
    $17::text[]
)
"""


async def add_requests(
    conn: Connection,
    *,
    visit_ids: Sequence[int],
    started_ats: Sequence[datetime],
    numbers: Sequence[int],
    organisation_ids: Sequence[OrganisationId],
    url_ids: Sequence[UrlId],
    sent_ats: Sequence[datetime],
    total_mss: Sequence[float | None] | None,
    dns_mss: Sequence[float | None] | None,
    connect_mss: Sequence[float | None] | None,
    tls_mss: Sequence[float | None] | None,
    first_byte_mss: Sequence[float | None] | None,
    robots_approveds: Sequence[bool],
    exit_codes: Sequence[int],
    statuses: Sequence[int | None] | None,
    etags: Sequence[str | None] | None,
    last_modifieds: Sequence[datetime | None] | None,
    remote_addresses: Sequence[str | None] | None,
) -> None:
    """Write the requests of visits."""
    await conn.execute(
        _ADD_REQUESTS,
        visit_ids,
        started_ats,
        numbers,
        organisation_ids,
        url_ids,
        sent_ats,
        total_mss,
        dns_mss,
        connect_mss,
        tls_mss,
        first_byte_mss,
        robots_approveds,
        exit_codes,
        statuses,
        etags,
        last_modifieds,
        remote_addresses,
    )


_ADD_REDIRECTS: Final = """
-- name: AddRedirects
INSERT INTO archive.redirect (
    visit_id, started_at, number, organisation_id, request_number, url_id, to_url_id, source,
    is_permanent, by_security_policy, last_modified
)
SELECT *
FROM unnest(
    $1::bigint[],
    $2::timestamptz[],
    $3::smallint[],
    $4::uuid[],
    $5::smallint[],
    $6::bigint[],
    $7::bigint[],
    $8::smallint[],
    $9::boolean[],
    $10::boolean[],
    $11::timestamptz[]
)
"""


async def add_redirects(
    conn: Connection,
    *,
    visit_ids: Sequence[int],
    started_ats: Sequence[datetime],
    numbers: Sequence[int],
    organisation_ids: Sequence[OrganisationId],
    request_numbers: Sequence[int | None] | None,
    url_ids: Sequence[UrlId],
    to_url_ids: Sequence[UrlId],
    sources: Sequence[int],
    permanents: Sequence[bool],
    security_policies: Sequence[bool],
    last_modifieds: Sequence[datetime | None] | None,
) -> None:
    """Write the redirects that visits met."""
    await conn.execute(
        _ADD_REDIRECTS,
        visit_ids,
        started_ats,
        numbers,
        organisation_ids,
        request_numbers,
        url_ids,
        to_url_ids,
        sources,
        permanents,
        security_policies,
        last_modifieds,
    )


_ADD_FILES: Final = """
-- name: AddFiles
INSERT INTO archive.file (
    visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
    mimetype_id, canonical_url_id, charset, headers, sha256
)
SELECT
    visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
    mimetype_id, canonical_url_id, charset, headers::jsonb, sha256
FROM unnest(
    $1::bigint[],
    $2::timestamptz[],
    $3::uuid[],
    $4::smallint[],
    $5::bigint[],
    $6::timestamptz[],
    $7::bigint[],
    $8::integer[],
    $9::bigint[],
    $10::text[],
    $11::text[],
    $12::bytea[]
) AS new (
    visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
    mimetype_id, canonical_url_id, charset, headers, sha256
)
"""


async def add_files(
    conn: Connection,
    *,
    visit_ids: Sequence[int],
    started_ats: Sequence[datetime],
    organisation_ids: Sequence[OrganisationId],
    request_numbers: Sequence[int | None] | None,
    url_ids: Sequence[UrlId],
    last_modifieds: Sequence[datetime | None] | None,
    sizes: Sequence[int | None] | None,
    mimetype_ids: Sequence[int],
    canonical_url_ids: Sequence[UrlId | None] | None,
    charsets: Sequence[str | None] | None,
    headers: Sequence[str | None] | None,
    sha256s: Sequence[bytes | None] | None,
) -> None:
    """Write the files that visits brought home."""
    await conn.execute(
        _ADD_FILES,
        visit_ids,
        started_ats,
        organisation_ids,
        request_numbers,
        url_ids,
        last_modifieds,
        sizes,
        mimetype_ids,
        canonical_url_ids,
        charsets,
        headers,
        sha256s,
    )


_PURGE_VISITS: Final = """
-- name: PurgeVisits
WITH old AS (
    SELECT v.started_at, v.id FROM archive.visit v WHERE v.site_id = $1
    LIMIT $2::integer
),
requests AS (
    DELETE FROM archive.request r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
redirects AS (
    DELETE FROM archive.redirect r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
files AS (
    DELETE FROM archive.file f USING old
    WHERE f.started_at = old.started_at AND f.visit_id = old.id
),
gone AS (
    DELETE FROM archive.visit v USING old
    WHERE v.started_at = old.started_at AND v.id = old.id
    RETURNING v.id
)
SELECT count(*) AS visits FROM gone
"""


async def purge_visits(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete some visits of a site that is no more, with all that they own."""
    value: int = await conn.fetchval(_PURGE_VISITS, site_id, most)
    return value
