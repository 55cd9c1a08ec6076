"""The leases that a worker holds, and what it does when one is lost."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.queue.sql import leases as queries

LEASE_TIME: Final = timedelta(seconds=60)
# Often enough to fail twice before the lease is lost.
RENEWALS_PER_LEASE: Final = 4
MOST_STALLS: Final = 9


class Leases:
    """Counts the tasks in hand under each lease; a lease without tasks is let run out."""

    def __init__(self) -> None:
        self._tasks: dict[int, int] = {}

    def hold(self, lease_id: int, tasks: int = 1) -> None:
        self._tasks[lease_id] = self._tasks.get(lease_id, 0) + tasks

    def let_go(self, lease_id: int) -> None:
        left = self._tasks.get(lease_id, 0) - 1
        if left > 0:
            self._tasks[lease_id] = left
        else:
            self._tasks.pop(lease_id, None)

    def forget(self, lease_ids: Iterable[int]) -> None:
        for lease_id in lease_ids:
            self._tasks.pop(lease_id, None)

    async def renew(self, conn: Connection, lease_time: timedelta) -> set[int]:
        """Give all leases more time, in one statement; return those that are lost."""
        held = list(self._tasks)
        if not held:
            return set()
        renewed = await queries.renew_leases(conn, leases=held, lease_time=lease_time)
        return set(held) - set(renewed)
