"""Waiting for a job or a task to end: woken by notices, but believing only the database."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId, TaskId
from trapline.queue import jobs, tasks
from trapline.queue.notices import Ears
from trapline.queue.sql.jobs import JobRow
from trapline.queue.sql.tasks import GetTaskRow

POLL: Final = timedelta(seconds=1)
_ENDED_TASK: Final = frozenset({"completed", "failed", "skipped", "cancelled"})


class Waiting:
    """Waits for jobs and tasks of one process."""

    def __init__(self, database: Database, ears: Ears, *, poll: timedelta = POLL) -> None:
        self._database = database
        self._poll = poll.total_seconds()
        self._waiters: dict[str, list[asyncio.Event]] = {}
        ears.on_jobs(self._hear)

    def _hear(self, job_ids: frozenset[str]) -> None:
        for job_id in job_ids:
            for event in self._waiters.get(job_id, ()):
                event.set()

    async def for_job(
        self, job_id: JobId, organisation_id: OrganisationId, *, seconds: float | None = None
    ) -> JobRow:
        """Return the job once it has ended; TimeoutError when that takes too long."""
        async with asyncio.timeout(seconds):
            with self._hearing(job_id) as event:
                while True:
                    event.clear()
                    job = await self._job(job_id, organisation_id)
                    if job.status in jobs.ENDED:
                        return job
                    await self._notice(event)

    async def for_task(
        self, task_id: TaskId, organisation_id: OrganisationId, *, seconds: float | None = None
    ) -> GetTaskRow:
        """Return the task once it has ended; TimeoutError when that takes too long."""
        async with asyncio.timeout(seconds):
            job_id = (await self._task(task_id, organisation_id)).job_id
            with self._hearing(job_id) as event:
                while True:
                    event.clear()
                    task = await self._task(task_id, organisation_id)
                    if task.status in _ENDED_TASK:
                        return task
                    await self._notice(event)

    async def _job(self, job_id: JobId, organisation_id: OrganisationId) -> JobRow:
        async with self._database.tenant_tx(organisation_id) as conn:
            return await jobs.get(conn, job_id)

    async def _task(self, task_id: TaskId, organisation_id: OrganisationId) -> GetTaskRow:
        async with self._database.tenant_tx(organisation_id) as conn:
            return await tasks.get(conn, task_id)

    @contextmanager
    def _hearing(self, job_id: JobId) -> Iterator[asyncio.Event]:
        """Hear of a job from before the first look at it, so that no notice falls in between."""
        event = asyncio.Event()
        waiters = self._waiters.setdefault(str(job_id), [])
        waiters.append(event)
        try:
            yield event
        finally:
            waiters.remove(event)
            if not waiters:
                self._waiters.pop(str(job_id), None)

    async def _notice(self, event: asyncio.Event) -> None:
        """Wait for a notice, but not longer than one poll."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await event.wait()
