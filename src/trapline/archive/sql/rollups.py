"""Typed functions of rollups.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from trapline.db.connection import Connection

_ROLL_UP_VISITS: Final = """
-- name: RollUpVisits
INSERT INTO archive.visit_day AS d
    (organisation_id, site_id, day, crawl_type, exit_code, visits, took_ms)
SELECT organisation_id, site_id, (started_at AT TIME ZONE 'UTC')::date, crawl_type, exit_code,
       count(*), sum(took_ms)
FROM archive.visit
WHERE started_at >= $1::timestamptz AND started_at < $2::timestamptz
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (organisation_id, site_id, day, crawl_type, exit_code) DO UPDATE
SET visits = d.visits + excluded.visits, took_ms = d.took_ms + excluded.took_ms
"""


async def roll_up_visits(conn: Connection, *, since: datetime, until: datetime) -> int:
    """Count the visits of some days by site, purpose and end."""
    return int((await conn.execute(_ROLL_UP_VISITS, since, until)).rpartition(" ")[2])
