"""Typed functions of usage.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId


class UsageSinceRow(Struct, frozen=True, gc=False):
    pages: int
    tokens: int


class UsageByMonthRow(Struct, frozen=True, gc=False):
    month: date
    key: str | None
    pages: int
    tokens: int


class UsageByDayRow(Struct, frozen=True, gc=False):
    day: date
    pages: int
    tokens: int


_ADD_USAGE: Final = """
-- name: AddUsage
INSERT INTO tenancy.usage AS u (organisation_id, day, api_key, pages, tokens)
SELECT organisation_id, day, api_key, sum(pages), sum(tokens)
FROM unnest(
    $1::uuid[],
    $2::date[],
    $3::text[],
    $4::bigint[],
    $5::bigint[]
) AS new (organisation_id, day, api_key, pages, tokens)
WHERE EXISTS (SELECT FROM tenancy.organisation o WHERE o.id = new.organisation_id)
GROUP BY organisation_id, day, api_key
ORDER BY organisation_id, day, api_key
ON CONFLICT (organisation_id, day, api_key) DO UPDATE
SET pages = u.pages + excluded.pages, tokens = u.tokens + excluded.tokens
"""


async def add_usage(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    days: Sequence[date],
    api_keys: Sequence[str],
    pages: Sequence[int],
    tokens: Sequence[int],
) -> None:
    """Add to the usage of organisations, in key order to avoid deadlocks."""
    await conn.execute(_ADD_USAGE, organisation_ids, days, api_keys, pages, tokens)


_USAGE_SINCE: Final = """
-- name: UsageSince
SELECT coalesce(sum(pages), 0)::bigint AS "pages!", coalesce(sum(tokens), 0)::bigint AS "tokens!"
FROM tenancy.usage
WHERE organisation_id = $1 AND day >= $2::date
"""


async def usage_since(
    conn: Connection, *, organisation_id: OrganisationId, day: date
) -> UsageSinceRow:
    """The usage of an organisation since a day."""
    (row,) = await conn.fetch(_USAGE_SINCE, organisation_id, day)
    return UsageSinceRow(*row)


_USAGE_BY_MONTH: Final = """
-- name: UsageByMonth
SELECT
    date_trunc('month', u.day::timestamp)::date AS "month!",
    (CASE WHEN $1::boolean THEN coalesce(k.name, '') END)::text AS "key?",
    sum(u.pages)::bigint AS "pages!",
    sum(u.tokens)::bigint AS "tokens!"
FROM tenancy.usage u LEFT JOIN tenancy.api_key k ON k.id::text = u.api_key
WHERE u.organisation_id = $2
GROUP BY 1, 2 ORDER BY 1, 2
"""


async def usage_by_month(
    conn: Connection, *, by_key: bool, organisation_id: OrganisationId
) -> list[UsageByMonthRow]:
    """The usage of an organisation by month, newest last, in total or by key."""
    return [
        UsageByMonthRow(*row) for row in await conn.fetch(_USAGE_BY_MONTH, by_key, organisation_id)
    ]


_USAGE_BY_DAY: Final = """
-- name: UsageByDay
SELECT day, sum(pages)::bigint AS "pages!", sum(tokens)::bigint AS "tokens!"
FROM tenancy.usage
WHERE organisation_id = $1 AND day >= $2::date
GROUP BY day ORDER BY day
"""


async def usage_by_day(
    conn: Connection, *, organisation_id: OrganisationId, since: date
) -> list[UsageByDayRow]:
    """The usage of an organisation by day, oldest first."""
    return [UsageByDayRow(*row) for row in await conn.fetch(_USAGE_BY_DAY, organisation_id, since)]
