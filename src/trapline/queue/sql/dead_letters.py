"""Typed functions of dead_letters.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId


class DeadLetterRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    organisation_id: OrganisationId
    job_id: JobId
    kind: str
    code: int | None
    error: str
    failed_at: datetime
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None
    retried_in: UUID | None


class UrlsOfTasksRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    url: str


class ResolveDeadLettersRow(Struct, frozen=True, gc=False):
    id: TaskId
    job_id: JobId
    kind: str
    payload: Any
    priority: int
    max_attempts: int
    timeout: timedelta | None
    counted: bool
    source: int
    gate: str | None


class NewestDeadLettersRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    job_id: JobId
    kind: str
    code: int | None
    error: str
    failed_at: datetime
    url: str | None


_LIST_DEAD_LETTERS: Final = """
-- name: ListDeadLetters
SELECT * FROM queue.dead_letter
WHERE organisation_id = $1 AND resolved_at IS NULL
    AND ($2::uuid IS NULL OR job_id = $2)
    AND ($3::text IS NULL OR kind = $3)
    AND ($4::smallint IS NULL OR code = $4)
ORDER BY failed_at LIMIT $5::integer
"""


async def list_dead_letters(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    job_id: JobId | None,
    kind: str | None,
    code: int | None,
    most: int,
) -> list[DeadLetterRow]:
    """Unresolved dead letters, oldest first."""
    return [
        DeadLetterRow(*row)
        for row in await conn.fetch(_LIST_DEAD_LETTERS, organisation_id, job_id, kind, code, most)
    ]


_URLS_OF_TASKS: Final = """
-- name: UrlsOfTasks
SELECT id AS task_id, payload ->> 'url' AS "url!" FROM queue.task
WHERE id = ANY ($1::bigint[]) AND payload ? 'url'
"""


async def urls_of_tasks(conn: Connection, *, task_ids: Sequence[TaskId]) -> list[UrlsOfTasksRow]:
    """The URLs of tasks that have one."""
    return [UrlsOfTasksRow(*row) for row in await conn.fetch(_URLS_OF_TASKS, task_ids)]


_RESOLVE_DEAD_LETTERS: Final = """
-- name: ResolveDeadLetters
WITH chosen AS MATERIALIZED (
    UPDATE queue.dead_letter d
    SET resolved_at = now(), resolved_by = $1::text,
        resolution = $2::text, retried_in = $3::uuid
    WHERE d.organisation_id = $4 AND d.resolved_at IS NULL
        AND ($5::bigint[] IS NULL OR d.task_id = ANY ($5))
        AND ($6::uuid IS NULL OR d.job_id = $6)
        AND ($7::text IS NULL OR d.kind = $7)
        AND ($8::smallint IS NULL OR d.code = $8)
    RETURNING d.task_id
)
SELECT t.id, t.job_id AS "job_id!", t.kind, t.payload, t.priority, t.max_attempts, t.timeout, t.counted, t.source,
       g.name AS gate
FROM chosen c
JOIN queue.task t ON t.id = c.task_id
LEFT JOIN queue.gate g ON g.id = t.gate_id
ORDER BY t.id
"""


async def resolve_dead_letters(
    conn: Connection,
    *,
    by_whom: str | None,
    resolution: str,
    retried_in: UUID | None,
    organisation_id: OrganisationId,
    tasks: Sequence[int | None] | None,
    job_id: JobId | None,
    kind: str | None,
    code: int | None,
) -> list[ResolveDeadLettersRow]:
    """Mark dead letters as resolved; return the fields that a retry needs."""
    return [
        ResolveDeadLettersRow(*row)
        for row in await conn.fetch(
            _RESOLVE_DEAD_LETTERS,
            by_whom,
            resolution,
            retried_in,
            organisation_id,
            tasks,
            job_id,
            kind,
            code,
        )
    ]


_NEWEST_DEAD_LETTERS: Final = """
-- name: NewestDeadLetters
SELECT d.task_id, d.job_id, d.kind, d.code, d.error, d.failed_at, (t.payload ->> 'url')::text AS "url?"
FROM queue.dead_letter d LEFT JOIN queue.task t ON t.id = d.task_id
WHERE d.organisation_id = $1 AND d.resolved_at IS NULL
    AND (d.failed_at, d.task_id) < ($2::timestamptz, $3::bigint)
    AND ($4::uuid IS NULL OR d.job_id = $4)
    AND ($5::text IS NULL OR d.kind = $5)
    AND ($6::smallint IS NULL OR d.code = $6)
ORDER BY d.failed_at DESC, d.task_id DESC LIMIT $7::integer
"""


async def newest_dead_letters(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    before: int,
    job_id: JobId | None,
    kind: str | None,
    code: int | None,
    most: int,
) -> list[NewestDeadLettersRow]:
    """Failed tasks that nobody has dealt with, with their payloads, newest first, after a position."""
    return [
        NewestDeadLettersRow(*row)
        for row in await conn.fetch(
            _NEWEST_DEAD_LETTERS, organisation_id, at, before, job_id, kind, code, most
        )
    ]


_COUNT_DEAD_LETTERS: Final = """
-- name: CountDeadLetters
SELECT count(*) AS "letters!" FROM (
    SELECT FROM queue.dead_letter d
    WHERE d.organisation_id = $1 AND d.resolved_at IS NULL
        AND ($2::uuid IS NULL OR d.job_id = $2)
        AND ($3::text IS NULL OR d.kind = $3)
        AND ($4::smallint IS NULL OR d.code = $4)
    LIMIT $5::integer
) few
"""


async def count_dead_letters(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    job_id: JobId | None,
    kind: str | None,
    code: int | None,
    most: int,
) -> int:
    """How many failed tasks nobody has dealt with, counted up to a bound."""
    value: int = await conn.fetchval(_COUNT_DEAD_LETTERS, organisation_id, job_id, kind, code, most)
    return value
