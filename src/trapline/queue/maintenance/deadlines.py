"""Queued tasks whose own time is up fail, with a reason, like any other attempt."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.errors import OUTCOMES, ExitCode
from trapline.model import TaskId
from trapline.queue.leases import MOST_STALLS
from trapline.queue.maintenance.duty import Duty
from trapline.queue.retries import Verdict
from trapline.queue.sql import finishing, tasks
from trapline.settings import Settings

_AT_ONCE: Final = 1000


async def expire(database: Database) -> int:
    """End tasks that waited past their deadline."""
    async with database.system_tx() as conn:
        taken = [
            (row.lease_id, row.task_id)
            for rows in (
                await tasks.overdue(conn, most=_AT_ONCE),
                await tasks.overdue_waiting(conn, most=_AT_ONCE),
            )
            for row in rows
        ]
        if taken:
            await finishing.finish(
                conn, verdicts=[_late(*one) for one in taken], lost=False, most_stalls=MOST_STALLS
            )
    return len(taken)


def _late(lease_id: int, task_id: TaskId) -> tuple[int, TaskId, int, int, None, str, None]:
    code = ExitCode.DEADLINE_PASSED
    return (lease_id, task_id, Verdict.FAILED, code, None, OUTCOMES[code].sentence, None)


def duties(_: Settings) -> list[Duty]:
    return [Duty("deadlines", expire, timedelta(seconds=5))]
