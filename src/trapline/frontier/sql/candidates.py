"""Typed functions of candidates.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SiteId, UrlId

_DISCOVER_CANDIDATES: Final = """
-- name: DiscoverCandidates
INSERT INTO frontier.candidate (site_id, url_id, organisation_id)
SELECT DISTINCT site_id, url_id, organisation_id
FROM unnest(
    $1::uuid[], $2::bigint[], $3::uuid[]
) AS new (site_id, url_id, organisation_id)
ORDER BY site_id, url_id
ON CONFLICT DO NOTHING
"""


async def discover_candidates(
    conn: Connection,
    *,
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    organisation_ids: Sequence[OrganisationId],
) -> None:
    """Note URLs as places to go; those that are known stay as they are."""
    await conn.execute(_DISCOVER_CANDIDATES, site_ids, url_ids, organisation_ids)


_VISIT_CANDIDATES: Final = """
-- name: VisitCandidates
INSERT INTO frontier.candidate AS c (
    site_id, url_id, organisation_id, last_visit_at, last_exit_code, last_contentful_at,
    last_etag, last_modified, looks, changes, seconds, failures, due_at
)
SELECT
    site_id, url_id, organisation_id, visited_at, exit_code, contentful_at,
    etag, last_modified, looks, changes, seconds, failures, due_at
FROM unnest(
    $1::uuid[],
    $2::bigint[],
    $3::uuid[],
    $4::timestamptz[],
    $5::smallint[],
    $6::timestamptz[],
    $7::text[],
    $8::timestamptz[],
    $9::double precision[],
    $10::double precision[],
    $11::double precision[],
    $12::integer[],
    $13::timestamptz[]
) AS new (
    site_id, url_id, organisation_id, visited_at, exit_code, contentful_at,
    etag, last_modified, looks, changes, seconds, failures, due_at
)
ORDER BY site_id, url_id
ON CONFLICT (site_id, url_id) DO UPDATE SET
    last_visit_at = excluded.last_visit_at,
    last_exit_code = excluded.last_exit_code,
    last_contentful_at = coalesce(excluded.last_contentful_at, c.last_contentful_at),
    last_etag = CASE
        WHEN excluded.last_contentful_at IS NULL THEN c.last_etag ELSE excluded.last_etag
    END,
    last_modified = CASE
        WHEN excluded.last_contentful_at IS NULL THEN c.last_modified ELSE excluded.last_modified
    END,
    looks = excluded.looks,
    changes = excluded.changes,
    seconds = excluded.seconds,
    failures = excluded.failures,
    due_at = excluded.due_at
"""


async def visit_candidates(
    conn: Connection,
    *,
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    organisation_ids: Sequence[OrganisationId],
    visited_ats: Sequence[datetime],
    exit_codes: Sequence[int],
    contentful_ats: Sequence[datetime | None] | None,
    etags: Sequence[str | None] | None,
    last_modifieds: Sequence[datetime | None] | None,
    looks: Sequence[float],
    changes: Sequence[float],
    seconds: Sequence[float],
    failures: Sequence[int],
    due_ats: Sequence[datetime | None] | None,
) -> None:
    """Note what visits learnt. A contentful one replaces the validators, any other keeps them."""
    await conn.execute(
        _VISIT_CANDIDATES,
        site_ids,
        url_ids,
        organisation_ids,
        visited_ats,
        exit_codes,
        contentful_ats,
        etags,
        last_modifieds,
        looks,
        changes,
        seconds,
        failures,
        due_ats,
    )


_PURGE_CANDIDATES: Final = """
-- name: PurgeCandidates
WITH gone AS (
    DELETE FROM frontier.candidate WHERE (site_id, url_id) IN (
        SELECT c.site_id, c.url_id FROM frontier.candidate c WHERE c.site_id = $1
        LIMIT $2::integer
    ) RETURNING url_id
)
SELECT count(*) AS candidates FROM gone
"""


async def purge_candidates(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete some candidates of a site that is no more."""
    value: int = await conn.fetchval(_PURGE_CANDIDATES, site_id, most)
    return value
