"""What a worker keeps an eye on beside its tasks: lanes, due times, ended jobs, its leases."""

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
from trapline.queue.finishing import Attempt
from trapline.queue.jobs import ENDED
from trapline.queue.lanes import Lanes
from trapline.queue.leases import RENEWALS_PER_LEASE, Leases
from trapline.queue.outbox import Outbox
from trapline.queue.retries import Verdict
from trapline.queue.running import Abort, Hands
from trapline.queue.sql import claiming as queries
from trapline.queue.statistics import Statistics

log = get_logger(__name__)

TICK: Final = 1.0
LANES_PER_ORGANISATION: Final = 10_000
PROMOTED_AT_ONCE: Final = 5_000
# Notices lead to a new look at the lanes only so many times its cost after the last one.
LOOKS_APART: Final = 5


@dataclass(slots=True)
class Lookout:
    """Brings the worker's memory up to date with the database, once a second or when told."""

    database: Database
    lanes: Lanes
    hands: Hands
    leases: Leases
    outbox: Outbox
    statistics: Statistics
    lease_time: timedelta
    refresh: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, jobs: frozenset[str]) -> None:
        """Look at once when there is news of a job whose tasks are in hand; else the next tick will do."""
        if any(str(job_id) in jobs for job_id in self.hands.jobs()):
            self.refresh.set()

    async def ticks(self) -> None:
        """Once a second, and when a notice comes: see which lanes there are and what is due."""
        while True:
            self.refresh.clear()
            now = time.monotonic()
            rows, states = await self.database.statement(self._look)
            self.lanes.refresh(rows, now)
            self.lanes.wake(now)
            self.outbox.news.set()
            next_at = await self._promote()
            self._heed({row.id: row.status for row in states})
            await self.statistics.flush_sometimes()
            await self._rest(now, next_at)

    async def _look(
        self, conn: Connection
    ) -> tuple[list[queries.ServedLanesRow], list[queries.StatesOfJobsRow]]:
        lanes = await queries.served_lanes(conn, most_per_organisation=LANES_PER_ORGANISATION)
        jobs = list(self.hands.jobs())
        return lanes, await queries.states_of_jobs(conn, jobs=jobs) if jobs else []

    async def _promote(self) -> datetime | None:
        """Let tasks run whose time has come; return when the next one's does."""
        due = await self.database.statement(
            lambda conn: queries.promote(conn, most=PROMOTED_AT_ONCE)
        )
        if due is not None and due.promoted:
            self.refresh.set()
        return due.next_at if due else None

    async def _rest(self, began: float, next_at: datetime | None) -> None:
        """Sleep until the next tick is worth it; many lanes are looked at less often."""
        took = time.monotonic() - began
        pause = max(TICK, 20 * took)
        if next_at is not None:
            pause = min(pause, max(0.01, (next_at - datetime.now(UTC)).total_seconds()))
        try:
            async with asyncio.timeout(pause):
                # A burst of notices is gathered into one reason for the next look.
                await asyncio.sleep(min(LOOKS_APART * took, TICK))
                await self.refresh.wait()
        except TimeoutError:
            return

    def _heed(self, states: dict[JobId, str]) -> None:
        """Stop tasks of jobs that have ended, hand back those of paused ones that do not run yet."""
        if not states:
            return
        now = time.monotonic()
        for task in self.hands.withdraw(lambda task: task.job_id in states):
            ended = states[task.job_id] in ENDED
            verdict = Verdict.CANCELLED if ended else Verdict.RELEASED
            self.outbox.put(Attempt(task, verdict, ExitCode.CANCELLED if ended else None))
        for running in list(self.hands.running.values()):
            if states.get(running.task.job_id) in ENDED:
                running.stop(Abort.JOB_ENDED, now)
        self.outbox.news.set()

    async def renewals(self) -> None:
        """Renew the leases; stop what is no longer ours."""
        while True:
            every = self.database.settings.lease_renewal_seconds
            await asyncio.sleep(min(every, self.lease_time.total_seconds() / RENEWALS_PER_LEASE))
            async with self.database.system_tx() as conn:
                lost = await self.leases.renew(conn, self.lease_time)
            if not lost:
                continue
            log.warning("leases were lost", leases=sorted(lost))
            now = time.monotonic()
            self.leases.forget(lost)
            self.hands.withdraw(lambda task, lost=lost: task.lease_id in lost)  # type: ignore[misc]
            for running in list(self.hands.running.values()):
                if running.task.lease_id in lost:
                    running.stop(Abort.LEASE_LOST, now)
            self.outbox.news.set()
