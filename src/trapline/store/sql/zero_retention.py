"""Typed functions of zero_retention.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId


class FleetingRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    url: str
    status: int | None
    content_type: str | None
    title: str | None
    language: str | None
    page_type: str | None
    stored_at: datetime
    markdown: str
    text: str
    metadata: Any
    links: Any
    warning: str | None
    body: bytes
    compressed: bool


_ADD_FLEETING: Final = """
-- name: AddFleeting
INSERT INTO store.fleeting (
    organisation_id, job_id, task_id, stored_at, url, status, content_type, title, language,
    page_type, text, markdown, metadata, links, warning, body, compressed
)
SELECT organisation_id, job_id, task_id, now(), url, status, content_type, title, language,
       page_type, text, markdown, metadata::jsonb, links::jsonb, warning, body,
       compressed
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::bigint[],
    $4::text[],
    $5::smallint[],
    $6::text[],
    $7::text[],
    $8::text[],
    $9::text[],
    $10::text[],
    $11::text[],
    $12::text[],
    $13::text[],
    $14::text[],
    $15::bytea[],
    $16::boolean[]
) AS new (
    organisation_id, job_id, task_id, url, status, content_type, title, language,
    page_type, text, markdown, metadata, links, warning, body, compressed
)
"""


async def add_fleeting(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    job_ids: Sequence[JobId],
    task_ids: Sequence[TaskId],
    urls: Sequence[str],
    statuses: Sequence[int | None] | None,
    content_types: Sequence[str | None] | None,
    titles: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    page_types: Sequence[str | None] | None,
    texts: Sequence[str],
    markdowns: Sequence[str],
    metadatas: Sequence[str],
    linkss: Sequence[str],
    warnings: Sequence[str | None] | None,
    bodies: Sequence[bytes],
    compresseds: Sequence[bool],
) -> None:
    """Insert content, which is readable for an hour."""
    await conn.execute(
        _ADD_FLEETING,
        organisation_ids,
        job_ids,
        task_ids,
        urls,
        statuses,
        content_types,
        titles,
        languages,
        page_types,
        texts,
        markdowns,
        metadatas,
        linkss,
        warnings,
        bodies,
        compresseds,
    )


_FLEETING_OF_TASKS: Final = """
-- name: FleetingOfTasks
SELECT task_id, url, status, content_type, title, language, page_type, stored_at, markdown, text,
       metadata, links, warning, body, compressed
FROM store.fleeting
WHERE job_id = $1 AND task_id = ANY ($2::bigint[])
    AND stored_at > now() - $3::interval
"""


async def fleeting_of_tasks(
    conn: Connection, *, job_id: JobId, tasks: Sequence[int], keep: timedelta
) -> list[FleetingRow]:
    """The content of tasks of a job within the last hour."""
    return [FleetingRow(*row) for row in await conn.fetch(_FLEETING_OF_TASKS, job_id, tasks, keep)]


_FLEETING_OF_JOB: Final = """
-- name: FleetingOfJob
SELECT task_id, url, status, content_type, title, language, page_type, stored_at, markdown, text,
       metadata, links, warning, body, compressed
FROM store.fleeting
WHERE job_id = $1 AND task_id > $2::bigint
    AND stored_at > now() - $3::interval
ORDER BY task_id LIMIT $4::integer
"""


async def fleeting_of_job(
    conn: Connection, *, job_id: JobId, after: int, keep: timedelta, most: int
) -> list[FleetingRow]:
    """The content of a job's tasks within the last hour, after a task."""
    return [
        FleetingRow(*row) for row in await conn.fetch(_FLEETING_OF_JOB, job_id, after, keep, most)
    ]


_DELETE_FLEETING: Final = """
-- name: DeleteFleeting
DELETE FROM store.fleeting_default WHERE stored_at <= $1::timestamptz
"""


async def delete_fleeting(conn: Connection, *, before: datetime) -> int:
    """Delete old rows of the default partition."""
    return int((await conn.execute(_DELETE_FLEETING, before)).rpartition(" ")[2])


_FLEETING_PARTITIONS: Final = """
-- name: FleetingPartitions
SELECT c.relname::text AS "name!" FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'store.fleeting'::regclass AND c.relname <> 'fleeting_default'
ORDER BY 1
"""


async def fleeting_partitions(conn: Connection) -> list[str]:
    """The names of the partitions."""
    return [row[0] for row in await conn.fetch(_FLEETING_PARTITIONS)]
