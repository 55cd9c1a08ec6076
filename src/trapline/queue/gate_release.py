"""Early release of a gate: once a task's request is over, the host may get the next one.

Extracting and storing the page then keep no other task from the host.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from trapline.db.connection import LOST
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.queue.micro_batch import MicroBatch
from trapline.queue.sql import leases as queries
from trapline.queue.tasks import Task

log = get_logger(__name__)

OnRelease = Callable[[Sequence[int]], None]
"""Called with the gates that have room again."""


class GateRelease:
    """Releases the gate slots of tasks whose requests are over, several in one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._on_release: list[OnRelease] = []
        self._batch = MicroBatch(self._release)

    def on_release(self, callback: OnRelease) -> None:
        self._on_release.append(callback)

    def release(self, task: Task, not_before: datetime | None) -> asyncio.Future[None]:
        """Release a task's gate slot; the gate opens no earlier than `not_before`.

        Await the future before the task is finished.
        """
        return self._batch.add((task, not_before))

    async def _release(self, slots: Sequence[tuple[Task, datetime | None]]) -> Sequence[None]:
        tasks = [task for task, _ in slots]
        try:
            await self._database.run_statement(
                lambda conn: queries.release_gates(
                    conn,
                    lease_ids=[task.lease_id for task in tasks],
                    task_ids=[task.id for task in tasks],
                    not_before=[not_before for _, not_before in slots],
                )
            )
        except (*LOST, DatabaseUnavailable) as error:
            # The slots are then released when the tasks end.
            log.warning("gates were not released early", error=str(error))
        else:
            for callback in self._on_release:
                callback([task.gate_id for task in tasks])
        return [None] * len(tasks)
