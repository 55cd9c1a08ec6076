"""The daily quota: how many pages an organisation may still visit today.

Pages are counted when tasks are claimed, under the lock of the organisation's one row, so the quota
is exact with any number of workers. A page that is skipped or retried is not counted.
"""

from datetime import UTC, datetime, timedelta

from trapline.db.connection import Connection
from trapline.errors import QuotaExceeded
from trapline.model import OrganisationId
from trapline.queue.sql import daily_quota as queries


async def pages_left(
    conn: Connection, organisation_id: OrganisationId, *, now: datetime
) -> int | None:
    """Return how many pages may still be visited today; None: there is no quota."""
    row = await queries.pages_of_day(conn, organisation_id=organisation_id, at=now)
    if row is None or row.most is None:
        return None
    return max(0, row.most - row.visited)


async def require_pages(
    conn: Connection, organisation_id: OrganisationId, *, now: datetime
) -> None:
    """Refuse new work of an organisation whose daily quota is exceeded."""
    if await pages_left(conn, organisation_id, now=now) == 0:
        raise quota_exceeded(now)


def quota_exceeded(now: datetime) -> QuotaExceeded:
    return QuotaExceeded(
        "The organisation's pages of today are used up; the next day begins at midnight, UTC.",
        retry_after=(tomorrow(now) - now).total_seconds(),
    )


def tomorrow(now: datetime) -> datetime:
    """Return when the day of the quota ends, in UTC."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)
