"""Typed functions of sources.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApplicationId, JobId, OrganisationId, PageId, SiteId, SourceId


class SourceRow(Struct, frozen=True, gc=False):
    id: SourceId
    organisation_id: OrganisationId
    application_id: ApplicationId | None
    kind: str
    name: str
    uri: str
    site_id: SiteId | None
    status: str
    error: str | None
    config: Any
    generation: int
    rescrape_every: timedelta | None
    fetching: Any
    provider: str
    job_id: JobId | None
    renewal_job_id: JobId | None
    sha256: bytes | None
    size: int | None
    content_type: str | None
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime


class SourceTargetsRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    organisation_id: OrganisationId
    application_id: ApplicationId | None
    kind: str
    name: str
    generation: int
    config: Any
    created_by: UUID | None


class UnfinishedFilesRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    application_id: ApplicationId | None


class SourcesOfApplicationRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    kind: str
    job_id: JobId | None


class EntryHashRow(Struct, frozen=True, gc=False):
    content_hash: bytes
    version_id: int | None


class EntriesToReembedRow(Struct, frozen=True, gc=False):
    entry_id: int
    uri: str
    path: str
    title: str | None
    language: str
    content_type: str | None
    page_id: PageId | None
    version_id: int | None
    content_hash: bytes
    markdown: str | None
    dated_at: datetime


class LockSourceRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    organisation_id: OrganisationId
    generation: int
    config: Any


class LockForReembeddingRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    generation: int
    renewal_job_id: JobId | None


class OrphanedEntriesRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    entries: int


_LOCK_SOURCE_KEY: Final = """
-- name: LockSourceKey
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.source ' || $1::text, 0))
"""


async def lock_source_key(conn: Connection, *, key: str) -> None:
    """Serialise callers that register files of one application, so that each sees the other's files."""
    await conn.execute(_LOCK_SOURCE_KEY, key)


_ADD_FILES: Final = """
-- name: AddFiles
INSERT INTO knowledge.source (
    id, organisation_id, application_id, kind, name, uri, config, job_id, sha256, size,
    content_type, created_by
)
SELECT
    new.id, $1, $2::uuid, 'file', new.name, new.uri,
    $3::jsonb, $4, new.sha256, new.size, new.content_type,
    $5::uuid
FROM unnest(
    $6::uuid[], $7::text[], $8::text[],
    $9::bytea[], $10::bigint[], $11::text[]
) AS new (id, name, uri, sha256, size, content_type)
"""


async def add_files(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    application_id: ApplicationId | None,
    config: Any,
    job_id: JobId,
    created_by: UUID | None,
    ids: Sequence[UUID],
    names: Sequence[str],
    uris: Sequence[str],
    hashes: Sequence[bytes],
    sizes: Sequence[int],
    content_types: Sequence[str | None] | None,
) -> None:
    """Add sources that are files."""
    await conn.execute(
        _ADD_FILES,
        organisation_id,
        application_id,
        config,
        job_id,
        created_by,
        ids,
        names,
        uris,
        hashes,
        sizes,
        content_types,
    )


_UPDATE_FILES: Final = """
-- name: UpdateFiles
UPDATE knowledge.source s
SET
    sha256 = new.sha256, size = new.size, content_type = new.content_type, status = 'pending',
    error = NULL, job_id = $1, updated_at = now()
FROM unnest(
    $2::uuid[], $3::bytea[], $4::bigint[],
    $5::text[]
) AS new (id, sha256, size, content_type)
WHERE s.id = new.id
"""


async def update_files(
    conn: Connection,
    *,
    job_id: JobId,
    ids: Sequence[UUID],
    hashes: Sequence[bytes],
    sizes: Sequence[int],
    content_types: Sequence[str | None] | None,
) -> None:
    """Update the bytes of existing files."""
    await conn.execute(_UPDATE_FILES, job_id, ids, hashes, sizes, content_types)


_ADD_SOURCE: Final = """
-- name: AddSource
INSERT INTO knowledge.source (
    id, organisation_id, application_id, kind, name, uri, config, fetching, provider, job_id, site_id,
    rescrape_every, created_by
)
VALUES (
    $1, $2, $3::uuid, $4,
    $5, $6, $7::jsonb, $8::jsonb,
    $9,
    $10::uuid, $11::uuid, $12::interval,
    $13::uuid
)
ON CONFLICT DO NOTHING
RETURNING *
"""


async def add_source(
    conn: Connection,
    *,
    id: UUID,
    organisation_id: OrganisationId,
    application_id: ApplicationId | None,
    kind: str,
    name: str,
    uri: str,
    config: Any,
    fetching: Any,
    provider: str,
    job_id: JobId | None,
    site_id: SiteId | None,
    rescrape_every: timedelta | None,
    created_by: UUID | None,
) -> SourceRow | None:
    """Add a source that is fetched."""
    row = await conn.fetchrow(
        _ADD_SOURCE,
        id,
        organisation_id,
        application_id,
        kind,
        name,
        uri,
        config,
        fetching,
        provider,
        job_id,
        site_id,
        rescrape_every,
        created_by,
    )
    return None if row is None else SourceRow(*row)


_GET_SOURCE: Final = """
-- name: GetSource
SELECT * FROM knowledge.source WHERE id = $1
"""


async def get_source(conn: Connection, *, source_id: SourceId) -> SourceRow | None:
    """One source."""
    row = await conn.fetchrow(_GET_SOURCE, source_id)
    return None if row is None else SourceRow(*row)


_SOURCE_AT: Final = """
-- name: SourceAt
SELECT * FROM knowledge.source
WHERE organisation_id = $1
    AND application_id IS NOT DISTINCT FROM $2::uuid
    AND md5(uri) = md5($3::text) AND uri = $3
    AND kind = $4 AND provider = $5 AND site_id IS NULL
ORDER BY created_at, id
LIMIT 1
"""


async def source_at(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    application_id: ApplicationId | None,
    uri: str,
    kind: str,
    provider: str,
) -> SourceRow | None:
    """The source of an application that is fetched from an address."""
    row = await conn.fetchrow(_SOURCE_AT, organisation_id, application_id, uri, kind, provider)
    return None if row is None else SourceRow(*row)


_SOURCE_OF_SITE: Final = """
-- name: SourceOfSite
SELECT * FROM knowledge.source
WHERE organisation_id = $1 AND site_id = $2
    AND application_id IS NULL
"""


async def source_of_site(
    conn: Connection, *, organisation_id: OrganisationId, site_id: SiteId
) -> SourceRow | None:
    """The source of what crawls of a site find that name no source of their own."""
    row = await conn.fetchrow(_SOURCE_OF_SITE, organisation_id, site_id)
    return None if row is None else SourceRow(*row)


_BEGIN_JOB: Final = """
-- name: BeginJob
UPDATE knowledge.source
SET job_id = $1, status = 'pending', error = NULL, updated_at = now()
WHERE id = ANY ($2::uuid[])
"""


async def begin_job(conn: Connection, *, job_id: JobId, source_ids: Sequence[SourceId]) -> None:
    """Record the job that fills sources from now on."""
    await conn.execute(_BEGIN_JOB, job_id, source_ids)


_SOURCE_TARGETS: Final = """
-- name: SourceTargets
SELECT id AS source_id, organisation_id, application_id, kind, name, generation, config, created_by
FROM knowledge.source
WHERE id = ANY ($1::uuid[])
ORDER BY id
FOR SHARE
"""


async def source_targets(
    conn: Connection, *, source_ids: Sequence[SourceId]
) -> list[SourceTargetsRow]:
    """The generation and config of sources, locked against change until the end of the transaction."""
    return [SourceTargetsRow(*row) for row in await conn.fetch(_SOURCE_TARGETS, source_ids)]


_FINISH_FILES: Final = """
-- name: FinishFiles
UPDATE knowledge.source s
SET status = ended.status, error = ended.error, updated_at = now()
FROM unnest(
    $1::uuid[], $2::uuid[], $3::text[],
    $4::text[]
) AS ended (id, job_id, status, error)
WHERE s.id = ended.id AND s.job_id = ended.job_id AND s.kind = 'file'
"""


async def finish_files(
    conn: Connection,
    *,
    source_ids: Sequence[SourceId],
    job_ids: Sequence[JobId],
    statuses: Sequence[str],
    errors: Sequence[str | None] | None,
) -> None:
    """Record the result of files, unless another job owns them now."""
    await conn.execute(_FINISH_FILES, source_ids, job_ids, statuses, errors)


_FINISH_SOURCES: Final = """
-- name: FinishSources
UPDATE knowledge.source s
SET
    status = CASE WHEN e.found THEN $1::text ELSE 'failed' END,
    error = CASE WHEN e.found THEN $2::text ELSE $3::text END,
    updated_at = now()
FROM (
    SELECT i.id, $1::text <> 'completed' OR EXISTS (
        SELECT FROM knowledge.entry e WHERE e.source_id = i.id AND e.generation = i.generation
    ) AS found
    FROM knowledge.source i WHERE i.job_id = $4
) AS e
WHERE s.id = e.id AND s.kind <> 'file' AND s.status IN ('pending', 'processing')
RETURNING s.id AS source_id
"""


async def finish_sources(
    conn: Connection, *, status: str, error: str | None, reason: str, job_id: JobId
) -> list[SourceId]:
    """Record the result of a job for its sources that are not files. A source without any text has failed."""
    return [row[0] for row in await conn.fetch(_FINISH_SOURCES, status, error, reason, job_id)]


_UNFINISHED_FILES: Final = """
-- name: UnfinishedFiles
SELECT id AS source_id, application_id FROM knowledge.source
WHERE job_id = $1 AND kind = 'file' AND status IN ('pending', 'processing')
ORDER BY id
FOR UPDATE
"""


async def unfinished_files(conn: Connection, *, job_id: JobId) -> list[UnfinishedFilesRow]:
    """The unfinished files of a job, locked."""
    return [UnfinishedFilesRow(*row) for row in await conn.fetch(_UNFINISHED_FILES, job_id)]


_CHANGE_SOURCE: Final = """
-- name: ChangeSource
UPDATE knowledge.source
SET
    name = coalesce($1::text, name),
    rescrape_every = CASE
        WHEN $2::boolean THEN rescrape_every
        ELSE $3::interval END,
    updated_at = now()
WHERE id = $4
RETURNING *
"""


async def change_source(
    conn: Connection,
    *,
    name: str | None,
    keep_rescrape: bool,
    rescrape_every: timedelta | None,
    source_id: SourceId,
) -> SourceRow | None:
    """Update the given fields of a source; `keep_rescrape` keeps its interval."""
    row = await conn.fetchrow(_CHANGE_SOURCE, name, keep_rescrape, rescrape_every, source_id)
    return None if row is None else SourceRow(*row)


_SET_FETCHING: Final = """
-- name: SetFetching
UPDATE knowledge.source
SET
    fetching = $1::jsonb,
    rescrape_every = coalesce($2::interval, rescrape_every),
    updated_at = now()
WHERE id = $3
RETURNING *
"""


async def set_fetching(
    conn: Connection, *, fetching: Any, rescrape_every: timedelta | None, source_id: SourceId
) -> SourceRow | None:
    """Update the fetch options of a source, and its interval if one is given."""
    row = await conn.fetchrow(_SET_FETCHING, fetching, rescrape_every, source_id)
    return None if row is None else SourceRow(*row)


_FETCHED_SOURCES: Final = """
-- name: FetchedSources
SELECT * FROM knowledge.source
WHERE application_id = $1 AND kind <> 'file'
ORDER BY id
"""


async def fetched_sources(conn: Connection, *, application_id: ApplicationId) -> list[SourceRow]:
    """The sources of an application that are not files."""
    return [SourceRow(*row) for row in await conn.fetch(_FETCHED_SOURCES, application_id)]


_DELETE_SOURCES: Final = """
-- name: DeleteSources
DELETE FROM knowledge.source
WHERE id IN (
    SELECT s.id FROM knowledge.source s WHERE s.id = ANY ($1::uuid[])
    ORDER BY s.id FOR UPDATE
)
"""


async def delete_sources(conn: Connection, *, source_ids: Sequence[SourceId]) -> int:
    """Delete sources with their index; in id order, as the end of a job locks them."""
    return int((await conn.execute(_DELETE_SOURCES, source_ids)).rpartition(" ")[2])


_SOURCES_OF_APPLICATION: Final = """
-- name: SourcesOfApplication
SELECT id AS source_id, kind, job_id FROM knowledge.source WHERE application_id = $1
"""


async def sources_of_application(
    conn: Connection, *, application_id: ApplicationId
) -> list[SourcesOfApplicationRow]:
    """The ids of an application's sources."""
    return [
        SourcesOfApplicationRow(*row)
        for row in await conn.fetch(_SOURCES_OF_APPLICATION, application_id)
    ]


_ENTRY_HASH: Final = """
-- name: EntryHash
SELECT e.content_hash, e.version_id
FROM knowledge.entry e JOIN knowledge.source s ON s.id = e.source_id AND s.generation = e.generation
WHERE e.source_id = $1 AND e.uri = $2
"""


async def entry_hash(conn: Connection, *, source_id: SourceId, uri: str) -> EntryHashRow | None:
    """The content hash of a source's text at a URI, in the searched generation."""
    row = await conn.fetchrow(_ENTRY_HASH, source_id, uri)
    return None if row is None else EntryHashRow(*row)


_ENTRIES_TO_REEMBED: Final = """
-- name: EntriesToReembed
SELECT
    e.id AS entry_id, e.uri, e.path, e.title, e.language, e.content_type, e.page_id, e.version_id,
    e.content_hash, e.markdown, e.dated_at
FROM knowledge.entry e
WHERE e.source_id = $1 AND e.generation = $2::integer
    AND NOT EXISTS (
        SELECT FROM knowledge.entry n
        WHERE n.source_id = e.source_id AND n.generation = $3::integer AND n.uri = e.uri
            AND n.content_hash = e.content_hash
    )
ORDER BY e.id
LIMIT $4::integer
"""


async def entries_to_reembed(
    conn: Connection, *, source_id: SourceId, present: int, target: int, most: int
) -> list[EntriesToReembedRow]:
    """Texts of a source's present generation that a later one lacks or has with other content."""
    return [
        EntriesToReembedRow(*row)
        for row in await conn.fetch(_ENTRIES_TO_REEMBED, source_id, present, target, most)
    ]


_DROP_STRAY_ENTRIES: Final = """
-- name: DropStrayEntries
DELETE FROM knowledge.entry n
WHERE n.source_id = $1 AND n.generation = $2::integer
    AND NOT EXISTS (
        SELECT FROM knowledge.entry e
        WHERE e.source_id = n.source_id AND e.generation = $3::integer
            AND e.uri = n.uri
    )
"""


async def drop_stray_entries(
    conn: Connection, *, source_id: SourceId, target: int, present: int
) -> int:
    """Delete texts of a later generation that the present one lacks."""
    return int(
        (await conn.execute(_DROP_STRAY_ENTRIES, source_id, target, present)).rpartition(" ")[2]
    )


_LOCK_SOURCE: Final = """
-- name: LockSource
SELECT id AS source_id, organisation_id, generation, config
FROM knowledge.source WHERE id = $1 FOR UPDATE
"""


async def lock_source(conn: Connection, *, source_id: SourceId) -> LockSourceRow | None:
    """Lock a source while its generation is swapped."""
    row = await conn.fetchrow(_LOCK_SOURCE, source_id)
    return None if row is None else LockSourceRow(*row)


_SET_CONFIG: Final = """
-- name: SetConfig
UPDATE knowledge.source
SET config = $1::jsonb, renewal_job_id = NULL, updated_at = now()
WHERE id = $2
"""


async def set_config(conn: Connection, *, config: Any, source_id: SourceId) -> None:
    """Set the config of a source after its re-embedding."""
    await conn.execute(_SET_CONFIG, config, source_id)


_LOCK_FOR_REEMBEDDING: Final = """
-- name: LockForReembedding
SELECT id AS source_id, generation, renewal_job_id FROM knowledge.source
WHERE id = ANY ($1::uuid[])
ORDER BY id
FOR UPDATE
"""


async def lock_for_reembedding(
    conn: Connection, *, source_ids: Sequence[SourceId]
) -> list[LockForReembeddingRow]:
    """Lock sources while their re-embedding is decided."""
    return [
        LockForReembeddingRow(*row) for row in await conn.fetch(_LOCK_FOR_REEMBEDDING, source_ids)
    ]


_BEGIN_REEMBEDDING: Final = """
-- name: BeginReembedding
UPDATE knowledge.source SET renewal_job_id = $1
WHERE id = ANY ($2::uuid[])
"""


async def begin_reembedding(
    conn: Connection, *, job_id: JobId, source_ids: Sequence[SourceId]
) -> None:
    """Record the job that re-embeds sources."""
    await conn.execute(_BEGIN_REEMBEDDING, job_id, source_ids)


_DROP_LATER_GENERATIONS: Final = """
-- name: DropLaterGenerations
WITH gone AS (
    DELETE FROM knowledge.entry e USING knowledge.source s
    WHERE s.id = ANY ($1::uuid[])
        AND e.source_id = s.id AND e.generation > s.generation
)
DELETE FROM knowledge.generation g USING knowledge.source s
WHERE s.id = ANY ($1::uuid[])
    AND g.source_id = s.id AND g.generation > s.generation
"""


async def drop_later_generations(conn: Connection, *, source_ids: Sequence[SourceId]) -> None:
    """Delete the unfinished later generations of sources."""
    await conn.execute(_DROP_LATER_GENERATIONS, source_ids)


_PURGE_SITE_ENTRIES: Final = """
-- name: PurgeSiteEntries
DELETE FROM knowledge.entry
WHERE id IN (
    SELECT e.id FROM knowledge.source AS s
    INNER JOIN knowledge.entry AS e ON s.id = e.source_id
    WHERE s.site_id = $1
    UNION ALL
    SELECT e.id FROM store.page AS p
    INNER JOIN knowledge.entry AS e ON p.id = e.page_id
    WHERE p.site_id = $1
    LIMIT $2::integer
)
"""


async def purge_site_entries(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete a batch of the texts of a site: of its own source, and of its pages in any source."""
    return int((await conn.execute(_PURGE_SITE_ENTRIES, site_id, most)).rpartition(" ")[2])


_PURGE_SITE_SOURCES: Final = """
-- name: PurgeSiteSources
DELETE FROM knowledge.source WHERE site_id = $1
"""


async def purge_site_sources(conn: Connection, *, site_id: SiteId) -> int:
    """Delete the sources of a site's own pages."""
    return int((await conn.execute(_PURGE_SITE_SOURCES, site_id)).rpartition(" ")[2])


_ORPHANED_ENTRIES: Final = """
-- name: OrphanedEntries
SELECT e.source_id, count(*) AS "entries!"
FROM knowledge.entry AS e
WHERE e.page_id IS NOT NULL AND NOT EXISTS (SELECT FROM store.page AS p WHERE p.id = e.page_id)
GROUP BY e.source_id
"""


async def orphaned_entries(conn: Connection) -> list[OrphanedEntriesRow]:
    """Texts that are searched though their page was deleted, by source."""
    return [OrphanedEntriesRow(*row) for row in await conn.fetch(_ORPHANED_ENTRIES)]
