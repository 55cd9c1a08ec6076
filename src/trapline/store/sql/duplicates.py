"""Typed functions of duplicates.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, PageId, SiteId


class TakeSightingsRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    site_id: SiteId
    page_id: PageId
    version_id: int
    seen_at: datetime
    content_hash: bytes
    title: str | None


class CountContentsRow(Struct, frozen=True, gc=False):
    content_id: int
    organisation_id: OrganisationId
    site_id: SiteId
    content_hash: bytes
    first_version_id: int
    title: str | None
    group_id: int | None
    similarity: int | None
    words: int


class TextsOfRow(Struct, frozen=True, gc=False):
    version_id: int
    text: str


class ThresholdsOfRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    threshold: int


class SimilarContentsRow(Struct, frozen=True, gc=False):
    number: int
    content_id: int
    signature: bytes
    first_version_id: int
    title: str | None
    words: int


class LikenessRow(Struct, frozen=True, gc=False):
    page_id: PageId
    organisation_id: OrganisationId
    site_id: SiteId
    version_id: int
    content_id: int
    group_id: int | None
    similarity: int | None
    by_hand: bool


class ContentHashRow(Struct, frozen=True, gc=False):
    id: int
    organisation_id: OrganisationId
    site_id: SiteId
    content_hash: bytes
    first_seen_page_id: PageId
    first_version_id: int
    occurrence_count: int
    created_at: datetime
    last_seen_at: datetime
    title: str | None
    words: int
    group_id: int | None
    similarity: int | None


_LOCK_GROUPING: Final = """
-- name: LockGrouping
SELECT pg_advisory_xact_lock($1::bigint)
"""


async def lock_grouping(conn: Connection, *, key: int) -> None:
    """Let one transaction at a time count and compare."""
    await conn.execute(_LOCK_GROUPING, key)


_TAKE_SIGHTINGS: Final = """
-- name: TakeSightings
WITH taken AS (
    DELETE FROM store.sighting WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM store.sighting s LIMIT $1::integer FOR UPDATE SKIP LOCKED
    )) RETURNING organisation_id, site_id, page_id, version_id, seen_at
)
SELECT t.organisation_id, t.site_id, t.page_id, t.version_id, t.seen_at, v.content_hash, v.title
FROM taken t
JOIN store.version v ON v.id = t.version_id
ORDER BY t.version_id
"""


async def take_sightings(conn: Connection, *, most: int) -> list[TakeSightingsRow]:
    """Delete and return sightings to count, with the content of each page."""
    return [TakeSightingsRow(*row) for row in await conn.fetch(_TAKE_SIGHTINGS, most)]


_COUNT_CONTENTS: Final = """
-- name: CountContents
INSERT INTO store.content_hash AS c (
    organisation_id, site_id, content_hash, first_seen_page_id, first_version_id, title,
    occurrence_count, created_at, last_seen_at
)
SELECT *
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::bytea[],
    $4::uuid[],
    $5::bigint[],
    $6::text[],
    $7::bigint[],
    $8::timestamptz[],
    $9::timestamptz[]
)
ON CONFLICT (site_id, content_hash) DO UPDATE SET
    occurrence_count = c.occurrence_count + excluded.occurrence_count,
    last_seen_at = greatest(c.last_seen_at, excluded.last_seen_at)
RETURNING
    id AS content_id, organisation_id, site_id, content_hash, first_version_id, title, group_id,
    similarity, words
"""


async def count_contents(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    site_ids: Sequence[SiteId],
    content_hashes: Sequence[bytes],
    page_ids: Sequence[PageId],
    version_ids: Sequence[int],
    titles: Sequence[str | None] | None,
    counts: Sequence[int],
    first_ats: Sequence[datetime],
    last_ats: Sequence[datetime],
) -> list[CountContentsRow]:
    """Count the occurrences of contents. A new one has no group yet."""
    return [
        CountContentsRow(*row)
        for row in await conn.fetch(
            _COUNT_CONTENTS,
            organisation_ids,
            site_ids,
            content_hashes,
            page_ids,
            version_ids,
            titles,
            counts,
            first_ats,
            last_ats,
        )
    ]


_TEXTS_OF: Final = """
-- name: TextsOf
SELECT id AS version_id, text FROM store.version WHERE id = ANY ($1::bigint[])
"""


async def texts_of(conn: Connection, *, version_ids: Sequence[int]) -> list[TextsOfRow]:
    """The main texts of versions that still exist."""
    return [TextsOfRow(*row) for row in await conn.fetch(_TEXTS_OF, version_ids)]


_THRESHOLDS_OF: Final = """
-- name: ThresholdsOf
SELECT id AS site_id, (config ->> 'duplicate_threshold')::smallint AS "threshold!"
FROM store.site
WHERE id = ANY ($1::uuid[]) AND config ->> 'duplicate_threshold' IS NOT NULL
"""


async def thresholds_of(conn: Connection, *, site_ids: Sequence[SiteId]) -> list[ThresholdsOfRow]:
    """The duplicate thresholds of sites that set one."""
    return [ThresholdsOfRow(*row) for row in await conn.fetch(_THRESHOLDS_OF, site_ids)]


_SIMILAR_CONTENTS: Final = """
-- name: SimilarContents
SELECT wanted.number AS "number!", near.content_id, near.signature, near.first_version_id,
    near.title, near.words
FROM unnest($1::integer[], $2::text[]) AS wanted (number, bands)
CROSS JOIN LATERAL (
    SELECT f.content_id, f.signature, c.first_version_id, c.title, c.words
    FROM store.fingerprint f
    JOIN store.content_hash c ON c.id = f.content_id
    WHERE f.bands && wanted.bands::bigint[] AND f.algorithm = $3
    LIMIT $4::integer
) AS near
"""


async def similar_contents(
    conn: Connection, *, numbers: Sequence[int], bands: Sequence[str], algorithm: int, most: int
) -> list[SimilarContentsRow]:
    """Contents that share a MinHash band with one of these, up to a maximum for each."""
    return [
        SimilarContentsRow(*row)
        for row in await conn.fetch(_SIMILAR_CONTENTS, numbers, bands, algorithm, most)
    ]


_GROUP_CONTENTS: Final = """
-- name: GroupContents
UPDATE store.content_hash c
SET group_id = found.group_id, similarity = found.similarity, words = found.words
FROM unnest(
    $1::bigint[], $2::bigint[],
    $3::smallint[], $4::integer[]
) AS found (id, group_id, similarity, words)
WHERE c.id = found.id
"""


async def group_contents(
    conn: Connection,
    *,
    content_ids: Sequence[int],
    group_ids: Sequence[int | None] | None,
    similarities: Sequence[int | None] | None,
    words: Sequence[int],
) -> None:
    """Set the groups of contents."""
    await conn.execute(_GROUP_CONTENTS, content_ids, group_ids, similarities, words)


_ADD_FINGERPRINTS: Final = """
-- name: AddFingerprints
INSERT INTO store.fingerprint (content_id, organisation_id, algorithm, signature, bands)
SELECT content_id, organisation_id, $1, signature, bands::bigint[]
FROM unnest(
    $2::bigint[], $3::uuid[],
    $4::bytea[], $5::text[]
) AS new (content_id, organisation_id, signature, bands)
ON CONFLICT DO NOTHING
"""


async def add_fingerprints(
    conn: Connection,
    *,
    algorithm: int,
    content_ids: Sequence[int],
    organisation_ids: Sequence[OrganisationId],
    signatures: Sequence[bytes],
    bands: Sequence[str],
) -> None:
    """Insert the fingerprints of contents that lead a group."""
    await conn.execute(
        _ADD_FINGERPRINTS, algorithm, content_ids, organisation_ids, signatures, bands
    )


_ASSIGN_PAGES: Final = """
-- name: AssignPages
INSERT INTO store.likeness AS l
    (page_id, organisation_id, site_id, version_id, content_id, group_id, similarity)
SELECT new.*
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::uuid[],
    $4::bigint[],
    $5::bigint[],
    $6::bigint[],
    $7::smallint[]
) AS new (page_id, organisation_id, site_id, version_id, content_id, group_id, similarity)
-- A page that was purged since has no row.
JOIN store.page p ON p.id = new.page_id
ON CONFLICT (page_id) DO UPDATE SET
    version_id = excluded.version_id,
    content_id = excluded.content_id,
    group_id = CASE WHEN l.by_hand THEN l.group_id ELSE excluded.group_id END,
    similarity = CASE WHEN l.by_hand THEN l.similarity ELSE excluded.similarity END
WHERE l.version_id < excluded.version_id
"""


async def assign_pages(
    conn: Connection,
    *,
    page_ids: Sequence[PageId],
    organisation_ids: Sequence[OrganisationId],
    site_ids: Sequence[SiteId],
    version_ids: Sequence[int],
    content_ids: Sequence[int],
    group_ids: Sequence[int | None] | None,
    similarities: Sequence[int | None] | None,
) -> None:
    """Set the groups of pages, except where a user decided."""
    await conn.execute(
        _ASSIGN_PAGES,
        page_ids,
        organisation_ids,
        site_ids,
        version_ids,
        content_ids,
        group_ids,
        similarities,
    )


_GET_LIKENESS: Final = """
-- name: GetLikeness
SELECT * FROM store.likeness WHERE page_id = $1
"""


async def get_likeness(conn: Connection, *, page_id: PageId) -> LikenessRow | None:
    """The group of a page."""
    row = await conn.fetchrow(_GET_LIKENESS, page_id)
    return None if row is None else LikenessRow(*row)


_DECIDE_LIKENESS: Final = """
-- name: DecideLikeness
UPDATE store.likeness
SET group_id = $1, similarity = $2, by_hand = $3
WHERE page_id = $4
"""


async def decide_likeness(
    conn: Connection,
    *,
    group_id: int | None,
    similarity: int | None,
    by_hand: bool,
    page_id: PageId,
) -> int:
    """Set the group of a page, or none, by a user's decision."""
    return int(
        (await conn.execute(_DECIDE_LIKENESS, group_id, similarity, by_hand, page_id)).rpartition(
            " "
        )[2]
    )


_CLEAR_DECISION: Final = """
-- name: ClearDecision
UPDATE store.likeness l
SET group_id = c.group_id, similarity = c.similarity, by_hand = false
FROM store.content_hash c
WHERE l.page_id = $1 AND l.by_hand AND c.id = l.content_id
"""


async def clear_decision(conn: Connection, *, page_id: PageId) -> int:
    """Return a page to the group of its content."""
    return int((await conn.execute(_CLEAR_DECISION, page_id)).rpartition(" ")[2])


_GET_CONTENT: Final = """
-- name: GetContent
SELECT * FROM store.content_hash
WHERE site_id = $1 AND content_hash = $2
"""


async def get_content(
    conn: Connection, *, site_id: SiteId, content_hash: bytes
) -> ContentHashRow | None:
    """The occurrences of a content in a site, and its first page."""
    row = await conn.fetchrow(_GET_CONTENT, site_id, content_hash)
    return None if row is None else ContentHashRow(*row)
