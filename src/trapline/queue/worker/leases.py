"""Lease times, and the renewal of leases."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.queue.sql import leases as queries

LEASE_TIME: Final = timedelta(seconds=60)
# Often enough to fail twice before the lease is lost.
RENEWALS_PER_LEASE: Final = 4
MOST_STALLS: Final = 9


async def renew(conn: Connection, lease_ids: Collection[int], lease_time: timedelta) -> set[int]:
    """Extend leases in one statement; return those that are lost."""
    if not lease_ids:
        return set()
    renewed = await queries.renew_leases(conn, leases=list(lease_ids), lease_time=lease_time)
    return set(lease_ids) - set(renewed)
