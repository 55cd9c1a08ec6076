"""How many pages an organisation may still visit today.

They are counted when tasks are claimed, under the lock of the organisation's one row, so that the
limit is exact with any number of workers; a page that is skipped or comes again is given back.
"""

from datetime import UTC, datetime, timedelta

from trapline.db.connection import Connection
from trapline.errors import QuotaUsedUp
from trapline.model import OrganisationId
from trapline.queue.sql import quotas as queries


async def pages_left(
    conn: Connection, organisation_id: OrganisationId, *, now: datetime
) -> int | None:
    """Return how many pages may still be visited today; None: as many as one likes."""
    row = await queries.pages_of_day(conn, organisation_id=organisation_id, at=now)
    if row is None or row.most is None:
        return None
    return max(0, row.most - row.visited)


async def require_pages(
    conn: Connection, organisation_id: OrganisationId, *, now: datetime
) -> None:
    """Refuse new work of an organisation that has used up its pages of today."""
    if await pages_left(conn, organisation_id, now=now) == 0:
        raise used_up(now)


def used_up(now: datetime) -> QuotaUsedUp:
    return QuotaUsedUp(
        "The organisation's pages of today are used up; the next day begins at midnight, UTC.",
        retry_after=(tomorrow(now) - now).total_seconds(),
    )


def tomorrow(now: datetime) -> datetime:
    """Return when the day of the limit ends."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)
