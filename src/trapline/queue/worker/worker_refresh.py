"""The refresh of a worker's memory: its lanes, due tasks, ended jobs and leases."""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode
from trapline.logs import get_logger
from trapline.model import JobId
from trapline.queue.finish import Attempt
from trapline.queue.jobs import ENDED
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import claim as queries
from trapline.queue.worker.claimed_tasks import Abort, ClaimedTasks
from trapline.queue.worker.completion_buffer import CompletionBuffer
from trapline.queue.worker.lanes import Lanes
from trapline.queue.worker.leases import RENEWALS_PER_LEASE, renew
from trapline.queue.worker.statistics import Statistics

log = get_logger(__name__)

TICK: Final = 1.0
LANES_PER_ORGANISATION: Final = 10_000
PROMOTED_AT_ONCE: Final = 5_000
# A notification leads to a refresh only so many times its cost after the last one.
REFRESH_COST_FACTOR: Final = 5


@dataclass(slots=True)
class WorkerRefresh:
    """Reads the state that a worker remembers again, once a second or when notified."""

    database: Database
    lanes: Lanes
    claimed: ClaimedTasks
    completions: CompletionBuffer
    statistics: Statistics
    lease_time: timedelta
    refresh: asyncio.Event = field(default_factory=asyncio.Event)
    _lost: set[int] = field(default_factory=set)

    def on_job_events(self, jobs: frozenset[str]) -> None:
        """Refresh at once on events of a job whose tasks are claimed here; else the next tick will do."""
        if any(str(job_id) in jobs for job_id in self.claimed.jobs()):
            self.refresh.set()

    async def run(self) -> None:
        """Once a second, and on notification: refresh the lanes and promote due tasks."""
        while True:
            self.refresh.clear()
            now = time.monotonic()
            rows, states = await self.database.run_statement(self._read_lanes)
            self.lanes.refresh(rows, now)
            self.lanes.wake(now)
            self.completions.news.set()
            next_at = await self._promote()
            self._stop_ended_jobs({row.id: row.status for row in states})
            await self.statistics.flush_sometimes()
            await self._sleep(now, next_at)

    async def _read_lanes(
        self, conn: Connection
    ) -> tuple[list[queries.ServedLanesRow], list[queries.StatesOfJobsRow]]:
        lanes = await queries.served_lanes(conn, most_per_organisation=LANES_PER_ORGANISATION)
        jobs = list(self.claimed.jobs())
        return lanes, await queries.states_of_jobs(conn, jobs=jobs) if jobs else []

    async def _promote(self) -> datetime | None:
        """Let tasks run whose time has come; return when the next one's does."""
        due = await self.database.run_statement(
            lambda conn: queries.promote(conn, most=PROMOTED_AT_ONCE)
        )
        if due is not None and due.promoted:
            self.refresh.set()
        return due.next_at if due else None

    async def _sleep(self, began: float, next_at: datetime | None) -> None:
        """Sleep until the next tick; the more a refresh costs, the longer."""
        took = time.monotonic() - began
        pause = max(TICK, 20 * took)
        if next_at is not None:
            pause = min(pause, max(0.01, (next_at - datetime.now(UTC)).total_seconds()))
        try:
            async with asyncio.timeout(pause):
                # A burst of notifications causes one refresh.
                await asyncio.sleep(min(REFRESH_COST_FACTOR * took, TICK))
                await self.refresh.wait()
        except TimeoutError:
            return

    def _stop_ended_jobs(self, states: dict[JobId, str]) -> None:
        """Stop the tasks of ended jobs, and release those of paused jobs that do not run yet."""
        if not states:
            return
        now = time.monotonic()
        for task in self.claimed.withdraw(lambda task: task.job_id in states):
            ended = states[task.job_id] in ENDED
            verdict = TaskOutcome.CANCELLED if ended else TaskOutcome.RELEASED
            self.completions.put(Attempt(task, verdict, ExitCode.CANCELLED if ended else None))
        for running in list(self.claimed.running.values()):
            if states.get(running.task.job_id) in ENDED:
                running.stop(Abort.JOB_ENDED, now)
        self.completions.news.set()

    async def renew_leases(self) -> None:
        """Renew the leases of the tasks in hand, and stop the tasks whose lease is lost."""
        while True:
            every = self.database.settings.queue.lease_renewal_seconds
            await asyncio.sleep(min(every, self.lease_time.total_seconds() / RENEWALS_PER_LEASE))
            held = self._leases_in_hand()
            self._lost &= held
            async with self.database.system_tx() as conn:
                lost = await renew(conn, held - self._lost, self.lease_time)
            if lost:
                self._on_lost(lost)

    def _leases_in_hand(self) -> set[int]:
        """Return the leases of claimed tasks, and of ended attempts that are not finished yet."""
        claimed = {task.lease_id for task in self.claimed}
        return claimed | {attempt.task.lease_id for attempt in self.completions}

    def _on_lost(self, lost: set[int]) -> None:
        log.warning("leases were lost", leases=sorted(lost))
        self._lost |= lost
        now = time.monotonic()
        self.claimed.withdraw(lambda task: task.lease_id in lost)
        for running in list(self.claimed.running.values()):
            if running.task.lease_id in lost:
                running.stop(Abort.LEASE_LOST, now)
        self.completions.news.set()
