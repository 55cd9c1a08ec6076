"""Typed functions of sources.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import (
    ApplicationId,
    JobId,
    MemberId,
    OrganisationId,
    ScheduleId,
    SiteId,
    SourceId,
    TaskId,
)


class ExistingFilesRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    uri: str
    sha256: bytes
    status: str
    config: Any
    open: bool


class ScopeProgressRow(Struct, frozen=True, gc=False):
    total: int
    completed: int
    failed: int
    cancelled: int
    rest: int
    in_hand: int


class SourceDetails(Struct, frozen=True, gc=False):
    source_id: SourceId
    organisation_id: OrganisationId
    application_id: ApplicationId | None
    kind: str
    name: str
    uri: str
    site_id: SiteId | None
    provider: str
    error: str | None
    config: Any
    fetching: Any
    generation: int
    rescrape_every: timedelta | None
    job_id: JobId | None
    size: int | None
    content_type: str | None
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime
    schedule_id: ScheduleId | None
    fetched_every: timedelta | None
    next_fetch_at: datetime | None
    fetching_paused: bool
    renewal_job_id: JobId | None
    status: str


class CountPassagesRow(Struct, frozen=True, gc=False):
    renewed: int
    texts: int
    passages: int


class SourcesToUpgradeRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    organisation_id: OrganisationId
    config: Any


class SourcesByModelRow(Struct, frozen=True, gc=False):
    model: str
    sources: int
    renewing: int


class JobsOfItemsRow(Struct, frozen=True, gc=False):
    job_id: JobId
    created_at: datetime
    member_id: MemberId | None


class FailedItemsRow(Struct, frozen=True, gc=False):
    source_id: SourceId
    application_id: ApplicationId | None
    task_id: TaskId
    kind: str
    error: str


class LostItemsRow(Struct, frozen=True, gc=False):
    scope: UUID
    items: int


class VersionTextRow(Struct, frozen=True, gc=False):
    version_id: int
    markdown: str
    title: str | None
    language: str | None
    content_type: str | None
    fetched_at: datetime
    metadata: Any


class FailedFilesRow(Struct, frozen=True, gc=False):
    name: str
    error: str


_EXISTING_FILES: Final = """
-- name: ExistingFiles
SELECT
    s.id AS source_id, s.uri, s.sha256 AS "sha256!", s.status, s.config,
    EXISTS (
        SELECT FROM queue.job j
        WHERE j.id = s.job_id AND j.status IN ('pending', 'running', 'paused')
    ) AS "open!"
FROM knowledge.source s
WHERE s.organisation_id = $1
    AND s.application_id IS NOT DISTINCT FROM $2::uuid
    AND s.kind = 'file'
    AND s.sha256 IS NOT NULL
    AND (
        s.sha256 = ANY ($3::bytea[])
        OR md5(s.uri) = ANY ($4::text[])
    )
ORDER BY s.created_at, s.id
"""


async def existing_files(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    application_id: ApplicationId | None,
    hashes: Sequence[bytes],
    uri_digests: Sequence[str],
) -> list[ExistingFilesRow]:
    """Files that exist with one of these URIs or hashes. `open`: their job has not ended."""
    return [
        ExistingFilesRow(*row)
        for row in await conn.fetch(
            _EXISTING_FILES, organisation_id, application_id, hashes, uri_digests
        )
    ]


_SCOPE_PROGRESS: Final = """
-- name: ScopeProgress
WITH parts AS (
    SELECT
        t.job_id, sum(t.total) AS total, sum(t.completed) AS completed, sum(t.failed) AS failed,
        sum(t.total - t.completed - t.failed) AS rest
    FROM knowledge.tally t
    WHERE t.scope = $1
        AND ($2::timestamptz IS NULL OR t.minute >= $2)
    GROUP BY t.job_id
),
judged AS (
    SELECT p.*, EXISTS (
        SELECT FROM queue.job j
        WHERE j.id = p.job_id AND j.status IN ('pending', 'running', 'paused')
    ) AS open
    FROM parts p
),
summed AS (
    SELECT
        coalesce(sum(total), 0)::bigint AS total,
        coalesce(sum(completed), 0)::bigint AS completed,
        coalesce(sum(failed), 0)::bigint AS failed,
        coalesce(sum(rest) FILTER (WHERE NOT open), 0)::bigint AS cancelled,
        coalesce(sum(rest) FILTER (WHERE open), 0)::bigint AS rest
    FROM judged
)
SELECT
    s.total AS "total!", s.completed AS "completed!", s.failed AS "failed!",
    s.cancelled AS "cancelled!", s.rest AS "rest!",
    (
        SELECT count(*)
        FROM queue.leased d JOIN queue.task t ON t.id = d.task_id
        WHERE t.kind IN ('file', 'index')
            AND $1::uuid::text IN (t.payload ->> 'source_id', t.payload ->> 'application_id')
            AND EXISTS (SELECT FROM judged j WHERE j.job_id = t.job_id AND j.open)
    ) AS "in_hand!"
FROM summed s
"""


async def scope_progress(
    conn: Connection, *, scope: UUID, since: datetime | None
) -> ScopeProgressRow | None:
    """Progress of a source or an application. Items that an ended job left undone count as cancelled."""
    row = await conn.fetchrow(_SCOPE_PROGRESS, scope, since)
    return None if row is None else ScopeProgressRow(*row)


_GET_SOURCE: Final = """
-- name: GetSource
SELECT
    s.id AS source_id, s.organisation_id, s.application_id, s.kind, s.name, s.uri, s.site_id,
    s.provider, s.error, s.config, s.fetching, s.generation, s.rescrape_every, s.job_id, s.size,
    s.content_type, s.created_by, s.created_at, s.updated_at, c.id AS "schedule_id?",
    c.every AS "fetched_every?", c.next_at AS "next_fetch_at?",
    (c.paused_at IS NOT NULL)::boolean AS "fetching_paused!", r.id AS "renewal_job_id?",
    CASE
        WHEN s.status NOT IN ('pending', 'processing') THEN s.status
        WHEN j.id IS NULL AND s.job_id IS NULL THEN s.status
        WHEN j.id IS NULL OR j.status = 'cancelled' THEN 'cancelled'
        WHEN j.status IN ('completed', 'failed') AND s.kind <> 'file' THEN j.status
        WHEN s.kind <> 'file' AND j.status = 'running' THEN 'processing'
        WHEN j.status IN ('completed', 'failed') THEN 'processing'
        WHEN h.source_id IS NOT NULL THEN 'processing'
        ELSE 'pending' END AS "status!"
FROM knowledge.source s
LEFT JOIN queue.job j ON j.id = s.job_id
LEFT JOIN queue.job r
    ON r.id = s.renewal_job_id AND r.status IN ('pending', 'running', 'paused')
LEFT JOIN queue.schedule c
    ON c.organisation_id = s.organisation_id AND c.name_key = 'source ' || s.id::text
LEFT JOIN LATERAL (
    SELECT s.id AS source_id FROM queue.leased d JOIN queue.task t ON t.id = d.task_id
    WHERE t.job_id = s.job_id AND s.kind = 'file' AND t.kind = 'file'
        AND (t.payload ->> 'source_id')::uuid = s.id
    LIMIT 1
) h ON true
WHERE s.id = $1
"""


async def get_source(conn: Connection, *, source_id: SourceId) -> SourceDetails | None:
    """One source with its state."""
    row = await conn.fetchrow(_GET_SOURCE, source_id)
    return None if row is None else SourceDetails(*row)


_LIST_SOURCES: Final = """
-- name: ListSources
SELECT
    s.id AS source_id, s.organisation_id, s.application_id, s.kind, s.name, s.uri, s.site_id,
    s.provider, s.error, s.config, s.fetching, s.generation, s.rescrape_every, s.job_id, s.size,
    s.content_type, s.created_by, s.created_at, s.updated_at, c.id AS "schedule_id?",
    c.every AS "fetched_every?", c.next_at AS "next_fetch_at?",
    (c.paused_at IS NOT NULL)::boolean AS "fetching_paused!", r.id AS "renewal_job_id?",
    CASE
        WHEN s.status NOT IN ('pending', 'processing') THEN s.status
        WHEN j.id IS NULL AND s.job_id IS NULL THEN s.status
        WHEN j.id IS NULL OR j.status = 'cancelled' THEN 'cancelled'
        WHEN j.status IN ('completed', 'failed') AND s.kind <> 'file' THEN j.status
        WHEN s.kind <> 'file' AND j.status = 'running' THEN 'processing'
        WHEN j.status IN ('completed', 'failed') THEN 'processing'
        WHEN h.source_id IS NOT NULL THEN 'processing'
        ELSE 'pending' END AS "status!"
FROM knowledge.source s
LEFT JOIN queue.job j ON j.id = s.job_id
LEFT JOIN queue.job r
    ON r.id = s.renewal_job_id AND r.status IN ('pending', 'running', 'paused')
LEFT JOIN queue.schedule c
    ON c.organisation_id = s.organisation_id AND c.name_key = 'source ' || s.id::text
LEFT JOIN (
    SELECT DISTINCT (t.payload ->> 'source_id')::uuid AS source_id
    FROM queue.leased d JOIN queue.task t ON t.id = d.task_id
    WHERE t.kind = 'file'
) h ON h.source_id = s.id
WHERE s.organisation_id = $1
    AND ($2::uuid IS NULL OR s.application_id = $2)
    AND ($3::text IS NULL OR s.status = $3)
    AND ($4::text IS NULL OR s.kind = $4)
    AND (s.created_at, s.id) > ($5::timestamptz, $6::uuid)
ORDER BY s.created_at, s.id
LIMIT $7::integer
"""


async def list_sources(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    application_id: ApplicationId | None,
    status: str | None,
    kind: str | None,
    after_at: datetime,
    after_id: UUID,
    most: int,
) -> list[SourceDetails]:
    """Sources of an organisation or of one of its applications after a key, oldest first."""
    return [
        SourceDetails(*row)
        for row in await conn.fetch(
            _LIST_SOURCES, organisation_id, application_id, status, kind, after_at, after_id, most
        )
    ]


_COUNT_PASSAGES: Final = """
-- name: CountPassages
SELECT
    (SELECT count(*) FROM knowledge.entry e WHERE e.source_id = s.id AND e.generation > s.generation)
        AS "renewed!",
    (SELECT count(*) FROM knowledge.entry e WHERE e.source_id = s.id AND e.generation = s.generation)
        AS "texts!",
    (
        SELECT count(*) FROM knowledge.chunk c JOIN knowledge.entry e ON e.id = c.entry_id
        WHERE e.source_id = s.id AND e.generation = s.generation
    ) AS "passages!"
FROM knowledge.source s WHERE s.id = $1
"""


async def count_passages(conn: Connection, *, source_id: SourceId) -> CountPassagesRow | None:
    """Texts and passages of a source in its current generation, and texts in the next one."""
    row = await conn.fetchrow(_COUNT_PASSAGES, source_id)
    return None if row is None else CountPassagesRow(*row)


_SOURCES_TO_UPGRADE: Final = """
-- name: SourcesToUpgrade
SELECT s.id AS source_id, s.organisation_id, s.config
FROM knowledge.source s LEFT JOIN queue.job j ON j.id = s.renewal_job_id
WHERE s.config ->> 'model' <> $1::text AND s.status = 'completed'
    AND (j.id IS NULL OR j.finished_at < now() - $2::interval)
ORDER BY s.id
LIMIT $3::integer
"""


async def sources_to_upgrade(
    conn: Connection, *, model: str, after: timedelta, most: int
) -> list[SourcesToUpgradeRow]:
    """Completed sources with another embedding model than the current one and no re-embedding in progress. A failed re-embedding is repeated after a while."""
    return [
        SourcesToUpgradeRow(*row)
        for row in await conn.fetch(_SOURCES_TO_UPGRADE, model, after, most)
    ]


_OPEN_JOBS: Final = """
-- name: OpenJobs
SELECT id AS job_id FROM queue.job
WHERE id = ANY ($1::uuid[]) AND status IN ('pending', 'running', 'paused')
"""


async def open_jobs(conn: Connection, *, job_ids: Sequence[JobId]) -> list[JobId]:
    """Those of these jobs that are open."""
    return [row[0] for row in await conn.fetch(_OPEN_JOBS, job_ids)]


_SOURCES_BY_MODEL: Final = """
-- name: SourcesByModel
SELECT
    (s.config ->> 'model')::text AS "model!", count(*) AS "sources!",
    count(*) FILTER (WHERE r.id IS NOT NULL) AS "renewing!"
FROM knowledge.source s
LEFT JOIN queue.job r
    ON r.id = s.renewal_job_id AND r.status IN ('pending', 'running', 'paused')
WHERE s.organisation_id = $1
GROUP BY 1
ORDER BY 1
"""


async def sources_by_model(
    conn: Connection, *, organisation_id: OrganisationId
) -> list[SourcesByModelRow]:
    """Number of sources of an organisation by embedding model, and of those being re-embedded."""
    return [SourcesByModelRow(*row) for row in await conn.fetch(_SOURCES_BY_MODEL, organisation_id)]


_JOBS_OF_ITEMS: Final = """
-- name: JobsOfItems
SELECT id AS job_id, created_at, member_id FROM queue.job WHERE id = ANY ($1::uuid[])
"""


async def jobs_of_items(conn: Connection, *, job_ids: Sequence[JobId]) -> list[JobsOfItemsRow]:
    """Creation time and member of jobs."""
    return [JobsOfItemsRow(*row) for row in await conn.fetch(_JOBS_OF_ITEMS, job_ids)]


_FAILED_ITEMS: Final = """
-- name: FailedItems
SELECT
    (t.payload ->> 'source_id')::uuid AS "source_id!",
    (t.payload ->> 'application_id')::uuid AS "application_id?",
    d.task_id, t.kind, d.error
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = $1 AND t.kind IN ('file', 'index')
ORDER BY d.task_id
"""


async def failed_items(conn: Connection, *, job_id: JobId) -> list[FailedItemsRow]:
    """The errors of failed items of a job."""
    return [FailedItemsRow(*row) for row in await conn.fetch(_FAILED_ITEMS, job_id)]


_LOST_ITEMS: Final = """
-- name: LostItems
WITH lost AS (
    SELECT (t.payload ->> 'source_id')::uuid AS source_id,
        (t.payload ->> 'application_id')::uuid AS application_id
    FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
    WHERE d.job_id = $1 AND t.kind IN ('file', 'index')
        AND d.task_id NOT IN (
            SELECT e.task_id FROM queue.event e
            WHERE e.job_id = $1 AND e.type = 'item' AND e.task_id IS NOT NULL
        )
),
scopes AS (
    SELECT l.source_id AS scope FROM lost l JOIN knowledge.source s ON s.id = l.source_id
    WHERE s.kind <> 'file'
    UNION ALL
    SELECT l.application_id FROM lost l WHERE l.application_id IS NOT NULL
)
SELECT counted.scope::uuid AS "scope!", least(counted.items, open.rest)::bigint AS "items!"
FROM (SELECT s.scope, count(*) AS items FROM scopes s GROUP BY s.scope) counted
-- What an earlier round of the job lost was counted then.
JOIN LATERAL (
    SELECT sum(t.total - t.completed - t.failed) AS rest FROM knowledge.tally t
    WHERE t.scope = counted.scope AND t.job_id = $1
) open ON open.rest > 0
"""


async def lost_items(conn: Connection, *, job_id: JobId) -> list[LostItemsRow]:
    """Failed items of an ended job that no counter has, by the scope that counts them. An item that was counted has an event."""
    return [LostItemsRow(*row) for row in await conn.fetch(_LOST_ITEMS, job_id)]


_VERSION_TEXT: Final = """
-- name: VersionText
SELECT
    v.id AS version_id, v.markdown, v.title, v.language, v.content_type, v.fetched_at,
    v.metadata
FROM store.version v
WHERE v.id = $1
"""


async def version_text(conn: Connection, *, version_id: int) -> VersionTextRow | None:
    """The text and metadata of a version."""
    row = await conn.fetchrow(_VERSION_TEXT, version_id)
    return None if row is None else VersionTextRow(*row)


_JOBS_WITH_ITEMS: Final = """
-- name: JobsWithItems
SELECT wanted.id::uuid AS "job_id!"
FROM unnest($1::uuid[]) AS wanted (id)
WHERE EXISTS (SELECT FROM knowledge.source s WHERE s.job_id = wanted.id)
    OR EXISTS (SELECT FROM knowledge.tally t WHERE t.job_id = wanted.id)
"""


async def jobs_with_items(conn: Connection, *, job_ids: Sequence[JobId]) -> list[JobId]:
    """Those of these jobs that index something."""
    return [row[0] for row in await conn.fetch(_JOBS_WITH_ITEMS, job_ids)]


_FAILED_FILES: Final = """
-- name: FailedFiles
SELECT (t.payload ->> 'name')::text AS "name!", d.error
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = $1 AND t.kind = 'file'
ORDER BY 1
"""


async def failed_files(conn: Connection, *, job_id: JobId) -> list[FailedFilesRow]:
    """The failed files of a job by name, with their errors."""
    return [FailedFilesRow(*row) for row in await conn.fetch(_FAILED_FILES, job_id)]


_LAST_PAGE_ERROR: Final = """
-- name: LastPageError
SELECT (e.data ->> 'error')::text AS "error!"
FROM queue.event e
WHERE e.job_id = $1 AND e.type = 'page' AND e.data ->> 'error' IS NOT NULL
ORDER BY e.number DESC
LIMIT 1
"""


async def last_page_error(conn: Connection, *, job_id: JobId) -> str | None:
    """The error of the last failed page of a job."""
    value: str | None = await conn.fetchval(_LAST_PAGE_ERROR, job_id)
    return value
