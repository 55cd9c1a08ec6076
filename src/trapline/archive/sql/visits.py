"""Typed functions of visits.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.model import SiteId

_RECORD_VISITS: Final = """
-- name: RecordVisits
SELECT archive.record_visits(
    $1::archive.new_visit[],
    $2::archive.new_request[],
    $3::archive.new_redirect[],
    $4::archive.new_file[]
) AS "visit_ids!"
"""


async def record_visits(
    conn: Connection,
    *,
    visits: Sequence[
        tuple[
            UUID | None,
            UUID | None,
            int | None,
            UUID | None,
            int | None,
            UUID | None,
            int | None,
            int | None,
            datetime | None,
            int | None,
            int | None,
            str | None,
        ]
    ],
    requests: Sequence[
        tuple[
            int | None,
            int | None,
            int | None,
            datetime | None,
            float | None,
            float | None,
            float | None,
            float | None,
            float | None,
            bool | None,
            int | None,
            int | None,
            str | None,
            datetime | None,
            str | None,
        ]
    ],
    redirects: Sequence[
        tuple[
            int | None,
            int | None,
            int | None,
            int | None,
            int | None,
            int | None,
            bool | None,
            bool | None,
            datetime | None,
        ]
    ],
    files: Sequence[
        tuple[
            int | None,
            int | None,
            int | None,
            datetime | None,
            int | None,
            str | None,
            int | None,
            str | None,
            str | None,
            bytes | None,
        ]
    ],
) -> list[int]:
    """Write finished visits with their requests, redirects and files; their ids, in their order."""
    value: list[int] = await conn.fetchval(_RECORD_VISITS, visits, requests, redirects, files)
    return value


_PURGE_VISITS: Final = """
-- name: PurgeVisits
WITH old AS (
    SELECT v.started_at, v.id FROM archive.visit v WHERE v.site_id = $1
    LIMIT $2::integer
),
requests AS (
    DELETE FROM archive.request r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
redirects AS (
    DELETE FROM archive.redirect r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
files AS (
    DELETE FROM archive.file f USING old
    WHERE f.started_at = old.started_at AND f.visit_id = old.id
),
gone AS (
    DELETE FROM archive.visit v USING old
    WHERE v.started_at = old.started_at AND v.id = old.id
    RETURNING v.id
)
SELECT count(*) AS visits FROM gone
"""


async def purge_visits(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete some visits of a site that is no more, with all that they own."""
    value: int = await conn.fetchval(_PURGE_VISITS, site_id, most)
    return value
