"""Typed functions of candidates.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SiteId, UrlId


class FindCandidatesRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    url_id: UrlId
    organisation_id: OrganisationId
    discovered_at: datetime
    last_visit_at: datetime | None
    last_exit_code: int | None
    last_contentful_at: datetime | None
    last_etag: str | None
    last_modified: datetime | None
    visits: int
    changes: int
    gone: int
    due_at: datetime | None
    hash: bytes


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
    site_id, url_id, organisation_id, last_visit_at, last_exit_code,
    last_contentful_at, last_etag, last_modified, visits, changes, gone, due_at
)
SELECT
    site_id, url_id, organisation_id, visited_at, exit_code,
    CASE WHEN contentful THEN visited_at END, etag, last_modified,
    1, changed::int, gone::int, due_at
FROM unnest(
    $1::uuid[],
    $2::bigint[],
    $3::uuid[],
    $4::timestamptz[],
    $5::smallint[],
    $6::boolean[],
    $7::text[],
    $8::timestamptz[],
    $9::boolean[],
    $10::boolean[],
    $11::timestamptz[]
) AS new (
    site_id, url_id, organisation_id, visited_at, exit_code, contentful,
    etag, last_modified, changed, gone, due_at
)
ORDER BY site_id, url_id
ON CONFLICT (site_id, url_id) DO UPDATE SET
    last_visit_at = excluded.last_visit_at,
    last_exit_code = excluded.last_exit_code,
    last_contentful_at = coalesce(excluded.last_contentful_at, c.last_contentful_at),
    last_etag = CASE WHEN excluded.last_contentful_at IS NULL THEN c.last_etag ELSE excluded.last_etag END,
    last_modified = CASE
        WHEN excluded.last_contentful_at IS NULL THEN c.last_modified ELSE excluded.last_modified
    END,
    visits = c.visits + 1,
    changes = c.changes + excluded.changes,
    gone = CASE WHEN excluded.gone = 0 THEN 0 ELSE c.gone + 1 END,
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
    contentfuls: Sequence[bool],
    etags: Sequence[str | None] | None,
    last_modifieds: Sequence[datetime | None] | None,
    changeds: Sequence[bool],
    gones: Sequence[bool],
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
        contentfuls,
        etags,
        last_modifieds,
        changeds,
        gones,
        due_ats,
    )


_FIND_CANDIDATES: Final = """
-- name: FindCandidates
SELECT c.*, u.hash
FROM frontier.url u
JOIN frontier.candidate c ON c.url_id = u.id
WHERE u.organisation_id = $1
  AND u.hash = ANY ($2::bytea[])
  AND c.site_id = $3
"""


async def find_candidates(
    conn: Connection, *, organisation_id: OrganisationId, hashes: Sequence[bytes], site_id: SiteId
) -> list[FindCandidatesRow]:
    """What is known of URLs in a site, for conditional requests and recrawl."""
    return [
        FindCandidatesRow(*row)
        for row in await conn.fetch(_FIND_CANDIDATES, organisation_id, hashes, site_id)
    ]
