"""Leaving a gate before the task has ended: once its request is over, the next one may begin.

What a task still does then, reading and storing, keeps nobody else from the host.
"""

import asyncio
from collections.abc import Callable, Sequence

from trapline.db.connection import LOST
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.queue.sql import leases as queries
from trapline.queue.tasks import Task
from trapline.queue.together import Together

log = get_logger(__name__)

Freed = Callable[[Sequence[int]], None]
"""Told which gates have room again."""


class Leaving:
    """Gives back the places of tasks whose requests are over, several in one statement."""

    def __init__(self, database: Database, freed: Freed) -> None:
        self._database = database
        self._freed = freed
        self._together = Together(self._leave)

    def leave(self, task: Task) -> asyncio.Future[None]:
        """Give back a task's place. Await the answer before the task is finished."""
        return self._together.add(task)

    async def _leave(self, tasks: Sequence[Task]) -> None:
        try:
            await self._database.statement(
                lambda conn: queries.leave_gates(
                    conn,
                    lease_ids=[task.lease_id for task in tasks],
                    task_ids=[task.id for task in tasks],
                )
            )
        except (*LOST, DatabaseUnavailable) as error:
            # Then the places are given back with the tasks.
            log.warning("places were not given back early", error=str(error))
            return
        self._freed([task.gate_id for task in tasks])
