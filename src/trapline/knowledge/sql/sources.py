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


class PlacesRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    organisation_id: OrganisationId
    application_id: ApplicationId | None
    kind: str
    name: str
    generation: int
    config: Any
    created_by: UUID | None


class LeftFilesRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    application_id: ApplicationId | None


class SourcesOfApplicationRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    kind: str
    job_id: JobId | None


class EntryHashRow(Struct, frozen=True, gc=False):
    content_hash: bytes
    version_id: int | None


class EntriesToRenewRow(Struct, frozen=True, gc=False):
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


class LockForRenewalRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    generation: int
    renewal_job_id: JobId | None


_LOCK_SHELF: Final = """
-- name: LockShelf
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.source ' || $1::text, 0))
"""


async def lock_shelf(conn: Connection, *, shelf: str) -> None:
    """Register files of an application one caller at a time, so that the same file is seen to be there."""
    await conn.execute(_LOCK_SHELF, shelf)


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


_RENEW_FILES: Final = """
-- name: RenewFiles
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


async def renew_files(
    conn: Connection,
    *,
    job_id: JobId,
    ids: Sequence[UUID],
    hashes: Sequence[bytes],
    sizes: Sequence[int],
    content_types: Sequence[str | None] | None,
) -> None:
    """Take over the new bytes of files that are there."""
    await conn.execute(_RENEW_FILES, job_id, ids, hashes, sizes, content_types)


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
    """Note the job that fills sources from now on."""
    await conn.execute(_BEGIN_JOB, job_id, source_ids)


_PLACES: Final = """
-- name: Places
SELECT id AS source_id, organisation_id, application_id, kind, name, generation, config, created_by
FROM knowledge.source
WHERE id = ANY ($1::uuid[])
ORDER BY id
FOR SHARE
"""


async def places(conn: Connection, *, source_ids: Sequence[SourceId]) -> list[PlacesRow]:
    """Where the texts of sources go, and how they are made; they stay so until the end of the transaction."""
    return [PlacesRow(*row) for row in await conn.fetch(_PLACES, source_ids)]


_END_FILES: Final = """
-- name: EndFiles
UPDATE knowledge.source s
SET status = ended.status, error = ended.error, updated_at = now()
FROM unnest(
    $1::uuid[], $2::uuid[], $3::text[],
    $4::text[]
) AS ended (id, job_id, status, error)
WHERE s.id = ended.id AND s.job_id = ended.job_id AND s.kind = 'file'
"""


async def end_files(
    conn: Connection,
    *,
    source_ids: Sequence[SourceId],
    job_ids: Sequence[JobId],
    statuses: Sequence[str],
    errors: Sequence[str | None] | None,
) -> None:
    """Note how files ended; what another job has taken up since is that one's."""
    await conn.execute(_END_FILES, source_ids, job_ids, statuses, errors)


_END_SOURCES: Final = """
-- name: EndSources
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


async def end_sources(
    conn: Connection, *, status: str, error: str | None, reason: str, job_id: JobId
) -> list[SourceId]:
    """Note how a job ended for the sources that it fills and that are not files. One without any text has failed, whatever the job says."""
    return [row[0] for row in await conn.fetch(_END_SOURCES, status, error, reason, job_id)]


_LEFT_FILES: Final = """
-- name: LeftFiles
SELECT id AS source_id, application_id FROM knowledge.source
WHERE job_id = $1 AND kind = 'file' AND status IN ('pending', 'processing')
ORDER BY id
FOR UPDATE
"""


async def left_files(conn: Connection, *, job_id: JobId) -> list[LeftFilesRow]:
    """Files that a job has left without an end, which they are about to get."""
    return [LeftFilesRow(*row) for row in await conn.fetch(_LEFT_FILES, job_id)]


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
    """Change what is given of a source; `keep_rescrape` leaves how often as it is."""
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
    """Note how a source is fetched from now on; how often stays as it is unless that is said, too."""
    row = await conn.fetchrow(_SET_FETCHING, fetching, rescrape_every, source_id)
    return None if row is None else SourceRow(*row)


_FETCHED_SOURCES: Final = """
-- name: FetchedSources
SELECT * FROM knowledge.source
WHERE application_id = $1 AND kind <> 'file'
ORDER BY id
"""


async def fetched_sources(conn: Connection, *, application_id: ApplicationId) -> list[SourceRow]:
    """The sources of an application that are fetched."""
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
    """Delete sources with all that search reads of them; in the order of their ids, as they are ended."""
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
    """What the text of a source at an address was, in the generation that is searched."""
    row = await conn.fetchrow(_ENTRY_HASH, source_id, uri)
    return None if row is None else EntryHashRow(*row)


_ENTRIES_TO_RENEW: Final = """
-- name: EntriesToRenew
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


async def entries_to_renew(
    conn: Connection, *, source_id: SourceId, present: int, target: int, most: int
) -> list[EntriesToRenewRow]:
    """Texts of a source's present generation that a later one lacks, or has in an older state."""
    return [
        EntriesToRenewRow(*row)
        for row in await conn.fetch(_ENTRIES_TO_RENEW, source_id, present, target, most)
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
    """Remove texts of a later generation that the present one has no more."""
    return int(
        (await conn.execute(_DROP_STRAY_ENTRIES, source_id, target, present)).rpartition(" ")[2]
    )


_LOCK_SOURCE: Final = """
-- name: LockSource
SELECT id AS source_id, organisation_id, generation, config
FROM knowledge.source WHERE id = $1 FOR UPDATE
"""


async def lock_source(conn: Connection, *, source_id: SourceId) -> LockSourceRow | None:
    """Hold a source while its generations are exchanged."""
    row = await conn.fetchrow(_LOCK_SOURCE, source_id)
    return None if row is None else LockSourceRow(*row)


_SET_CONFIG: Final = """
-- name: SetConfig
UPDATE knowledge.source
SET config = $1::jsonb, renewal_job_id = NULL, updated_at = now()
WHERE id = $2
"""


async def set_config(conn: Connection, *, config: Any, source_id: SourceId) -> None:
    """Note how the texts of a source are made from now on, its renewal being done."""
    await conn.execute(_SET_CONFIG, config, source_id)


_LOCK_FOR_RENEWAL: Final = """
-- name: LockForRenewal
SELECT id AS source_id, generation, renewal_job_id FROM knowledge.source
WHERE id = ANY ($1::uuid[])
ORDER BY id
FOR UPDATE
"""


async def lock_for_renewal(
    conn: Connection, *, source_ids: Sequence[SourceId]
) -> list[LockForRenewalRow]:
    """Hold sources while it is decided whether they are made anew."""
    return [LockForRenewalRow(*row) for row in await conn.fetch(_LOCK_FOR_RENEWAL, source_ids)]


_BEGIN_RENEWAL: Final = """
-- name: BeginRenewal
UPDATE knowledge.source SET renewal_job_id = $1
WHERE id = ANY ($2::uuid[])
"""


async def begin_renewal(conn: Connection, *, job_id: JobId, source_ids: Sequence[SourceId]) -> None:
    """Note the job that makes sources anew."""
    await conn.execute(_BEGIN_RENEWAL, job_id, source_ids)


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
    """Remove what an earlier renewal of sources began and did not complete."""
    await conn.execute(_DROP_LATER_GENERATIONS, source_ids)
