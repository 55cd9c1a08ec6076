"""Deadlines: queued tasks past their deadline fail, with a reason."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.errors import OUTCOMES, ExitCode
from trapline.model import TaskId
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import finish, tasks
from trapline.queue.worker.leases import MOST_STALLS
from trapline.settings import Settings

_AT_ONCE: Final = 1000


async def expire(database: Database) -> int:
    """Fail the queued tasks whose deadline has passed."""
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
            await finish.finish(
                conn, outcomes=[_late(*one) for one in taken], lost=False, most_stalls=MOST_STALLS
            )
    return len(taken)


def _late(lease_id: int, task_id: TaskId) -> tuple[int, TaskId, int, int, None, str, None]:
    code = ExitCode.DEADLINE_PASSED
    return (lease_id, task_id, TaskOutcome.FAILED, code, None, OUTCOMES[code].sentence, None)


def duties(_: Settings) -> list[Duty]:
    return [Duty("deadlines", expire, timedelta(seconds=5))]
