"""Typed functions of daily_quota.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId


class PagesOfDayRow(Struct, frozen=True, gc=False):
    most: int | None
    visited: int


_PAGES_OF_DAY: Final = """
-- name: PagesOfDay
SELECT o.max_pages_per_day AS "most?",
       coalesce(CASE WHEN q.day = queue.day_of($1::timestamptz) THEN q.pages END, 0)
           AS "visited!"
FROM tenancy.organisation o
LEFT JOIN queue.quota q ON q.organisation_id = o.id
WHERE o.id = $2
"""


async def pages_of_day(
    conn: Connection, *, at: datetime, organisation_id: OrganisationId
) -> PagesOfDayRow | None:
    """An organisation's daily limit of pages, and the pages it visited today."""
    row = await conn.fetchrow(_PAGES_OF_DAY, at, organisation_id)
    return None if row is None else PagesOfDayRow(*row)
