"""Typed functions of scrape.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, ApiKeyId, OrganisationId, SiteId, TaskId


class BeginScrapeRow(Struct, frozen=True, gc=False):
    gate_id: int | None
    slots: int
    begin_at: datetime | None
    blocked_by: str | None
    task_id: TaskId | None
    lane_id: int | None
    lease_id: int | None
    site_id: SiteId | None
    last_visit_at: datetime | None
    last_contentful_at: datetime | None
    last_etag: str | None
    last_modified: datetime | None
    looks: float
    changes: float
    seconds: float
    failures: int
    due_at: datetime | None
    version_id: int | None
    content_hash: bytes | None
    variant: bytes | None


_BEGIN_SCRAPE: Final = """
-- name: BeginScrape
SELECT
    b.gate_id, b.slots AS "slots!", b.begin_at, b.blocked_by, b.task_id, b.lane_id, b.lease_id,
    k.site_id AS "site_id?", k.last_visit_at AS "last_visit_at?",
    k.last_contentful_at AS "last_contentful_at?", k.last_etag AS "last_etag?",
    k.last_modified AS "last_modified?", k.looks AS "looks!", k.changes AS "changes!",
    k.seconds AS "seconds!", k.failures AS "failures!", k.due_at AS "due_at?",
    k.version_id AS "version_id?", k.content_hash AS "content_hash?", k.variant AS "variant?"
FROM queue.begin_inline_task(
    ($1::queue.new_direct[])[1],
    ($2::queue.new_task[])[1],
    ($3::queue.new_gate[])[1],
    $4::timestamptz,
    $5::bigint,
    $6::interval,
    $7::boolean,
    CASE WHEN $8::boolean THEN
        tenancy.write_denial($9::uuid, $10::uuid) END
) b
CROSS JOIN store.look_up_pages(
    ARRAY[$10::uuid], ARRAY[$11::uuid],
    ARRAY[$12::text], ARRAY[$13::bytea], ARRAY[$14::bytea]
) k
"""


async def begin_scrape(
    conn: Connection,
    *,
    jobs: Sequence[
        tuple[
            UUID | None,
            UUID | None,
            UUID | None,
            str | None,
            int | None,
            str | None,
            str | None,
            UUID | None,
            bool | None,
            timedelta | None,
            timedelta | None,
        ]
    ],
    tasks: Sequence[
        tuple[
            UUID | None,
            str | None,
            str | None,
            str | None,
            int | None,
            int | None,
            int | None,
            timedelta | None,
            datetime | None,
            datetime | None,
            bool | None,
            int | None,
            UUID | None,
            UUID | None,
            UUID | None,
            datetime | None,
        ]
    ],
    gates: Sequence[tuple[str | None, timedelta | None, int | None, timedelta | None, int | None]],
    latest: datetime,
    agent_id: AgentId,
    lease_time: timedelta,
    again: bool,
    is_claimed: bool,
    api_key_id: ApiKeyId | None,
    organisation_id: OrganisationId,
    site_id: SiteId | None,
    origin: str,
    variant: bytes,
    hash: bytes,
) -> BeginScrapeRow | None:
    """Take slots and create a scrape with its leased task, or return what blocks it; and look up the page. The same statement verifies a caller that was not verified before."""
    row = await conn.fetchrow(
        _BEGIN_SCRAPE,
        jobs,
        tasks,
        gates,
        latest,
        agent_id,
        lease_time,
        again,
        is_claimed,
        api_key_id,
        organisation_id,
        site_id,
        origin,
        variant,
        hash,
    )
    return None if row is None else BeginScrapeRow(*row)


_WRITE_REFUSAL: Final = """
-- name: WriteRefusal
SELECT tenancy.write_denial($1::uuid, $2::uuid) AS reason
"""


async def write_refusal(
    conn: Connection, *, api_key_id: ApiKeyId | None, organisation_id: OrganisationId
) -> str | None:
    """Why a principal may not write now; null if they may."""
    value: str | None = await conn.fetchval(_WRITE_REFUSAL, api_key_id, organisation_id)
    return value
