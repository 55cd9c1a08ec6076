"""Typed functions of scraping.sql, made by `make sql`: edit that file instead."""

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


_BEGIN_SCRAPE: Final = """
-- name: BeginScrape
SELECT
    b.gate_id, b.slots AS "slots!", b.begin_at, b.blocked_by, b.task_id, b.lane_id, b.lease_id,
    s.id AS "site_id?", c.last_visit_at AS "last_visit_at?",
    c.last_contentful_at AS "last_contentful_at?", c.last_etag AS "last_etag?",
    c.last_modified AS "last_modified?", coalesce(c.looks, 0) AS "looks!",
    coalesce(c.changes, 0) AS "changes!", coalesce(c.seconds, 0) AS "seconds!",
    coalesce(c.failures, 0) AS "failures!", c.due_at AS "due_at?", p.version_id AS "version_id?",
    p.content_hash AS "content_hash?"
FROM queue.begin_direct(
    ($1::queue.new_direct[])[1],
    ($2::queue.new_task[])[1],
    ($3::queue.new_gate[])[1],
    $4::timestamptz,
    $5::bigint,
    $6::interval,
    $7::boolean,
    CASE WHEN $8::boolean THEN
        tenancy.refused($9::uuid, $10::uuid) END
) b
LEFT JOIN LATERAL (
    SELECT $11::uuid AS id WHERE $11::uuid IS NOT NULL
    UNION ALL
    SELECT i.id FROM store.site i
    WHERE $11::uuid IS NULL AND i.organisation_id = $10
        AND i.base_url = $12::text AND i.implicit AND i.deleted_at IS NULL
) s ON true
LEFT JOIN frontier.url u
    ON u.organisation_id = $10 AND u.hash = $13::bytea
LEFT JOIN frontier.candidate c ON c.site_id = s.id AND c.url_id = u.id
LEFT JOIN store.page p ON p.site_id = c.site_id AND p.url_id = c.url_id
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
    given_site: UUID | None,
    origin: str,
    hash: bytes,
) -> BeginScrapeRow | None:
    """Take a place and write a scrape, leased, or learn what is in the way; and what is known of its page. Who asks is judged in the same statement, where that was not done before."""
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
        given_site,
        origin,
        hash,
    )
    return None if row is None else BeginScrapeRow(*row)


_REFUSED: Final = """
-- name: Refused
SELECT tenancy.refused($1::uuid, $2::uuid) AS reason
"""


async def refused(
    conn: Connection, *, api_key_id: ApiKeyId | None, organisation_id: OrganisationId
) -> str | None:
    """Why someone who was known a moment ago may not write now; nothing when they may."""
    value: str | None = await conn.fetchval(_REFUSED, api_key_id, organisation_id)
    return value
