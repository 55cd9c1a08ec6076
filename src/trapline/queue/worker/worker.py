"""The worker: claims tasks, runs their handlers, finishes them.

    Lanes.pick ── ClaimLoop ──► ClaimedTasks ──► TaskRunners ──► CompletionBuffer ──► the next turn
                                                                     └─ results to store ──► Finisher

While handlers are fast, more tasks are claimed ahead, so that a turn moves hundreds; while they are
slow, no more than can run.
"""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from trapline.logs import get_logger
from trapline.queue.agents import Agent
from trapline.queue.finish import Attempt, Finisher, Store
from trapline.queue.gate_release import GateRelease
from trapline.queue.kinds import Kinds
from trapline.queue.notify import Listener, Notifier
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.supervisor import supervise
from trapline.queue.worker import claim_loop
from trapline.queue.worker.claim import Claimer
from trapline.queue.worker.claim_loop import ClaimLoop
from trapline.queue.worker.claimed_tasks import Abort, ClaimedTasks
from trapline.queue.worker.completion_buffer import CompletionBuffer
from trapline.queue.worker.lanes import Lanes
from trapline.queue.worker.statistics import Statistics
from trapline.queue.worker.task_runner import TaskRunners
from trapline.queue.worker.worker_refresh import WorkerRefresh

log = get_logger(__name__)

# How long a stopping worker tries to finish its attempts after the grace period.
_SETTLE_SECONDS: Final = 30.0
# How often a stopping worker checks whether the turns in progress have ended.
_GLANCE: Final = 0.005


@dataclass(slots=True)
class Worker:
    """One agent. `run` ends once `stop` was called and every task is finished or released."""

    agent: Agent
    kinds: Kinds
    notifier: Notifier
    gate_release: GateRelease
    store: Store | None = None
    grace: float = 10.0
    # None: as the settings say.
    lease_time: timedelta | None = None
    listener: Listener = field(init=False)
    _claimed: ClaimedTasks = field(default_factory=ClaimedTasks)
    _completions: CompletionBuffer = field(default_factory=CompletionBuffer)
    _statistics: Statistics = field(init=False)
    _runners: TaskRunners = field(init=False)
    _worker_refresh: WorkerRefresh = field(init=False)
    _claim_loop: ClaimLoop = field(init=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        database = self.agent.database
        settings = database.settings.queue
        lease_time = self.lease_time or timedelta(seconds=settings.lease_seconds)
        lanes = Lanes()
        self._statistics = Statistics(database)
        self._runners = TaskRunners(
            self.kinds,
            self._claimed,
            self._completions,
            self._statistics,
            self.store is not None,
        )
        self._worker_refresh = WorkerRefresh(
            database, lanes, self._claimed, self._completions, self._statistics, lease_time
        )
        self._claim_loop = ClaimLoop(
            self.agent,
            Claimer(database, self.kinds, lanes, lease_time, settings.most_stalls),
            Finisher(database, self.kinds, self.store, settings.most_stalls),
            lanes,
            self._claimed,
            self._completions,
            self.notifier,
            self._worker_refresh.refresh,
            self.agent.capacity,
        )
        self.listener = Listener(database)
        self.listener.on_ready(self._worker_refresh.refresh.set)
        self.listener.on_jobs(self._worker_refresh.on_job_events)
        self.gate_release.on_release(self._claim_loop.on_gate_release)
        self.notifier.on_ready_here(self._worker_refresh.refresh.set)

    @property
    def unfinished(self) -> int:
        """How many tasks it has claimed and not yet finished."""
        return self._claim_loop.unfinished()

    def stop(self) -> None:
        """Claim nothing more; finish or release the claimed tasks."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped."""
        await self.agent.register()
        duties = [
            asyncio.create_task(supervise(name, work), name=name)
            for name, work in (
                ("ticks", self._worker_refresh.run),
                ("renewal", self._worker_refresh.renew_leases),
                ("watch", self._runners.enforce_timeouts),
                ("storing", self._claim_loop.store_results),
                *(("turns", self._claim_loop.run) for _ in range(claim_loop.AT_ONCE)),
                ("listener", self.listener.run),
                ("agent", self.agent.keep_alive),
            )
        ]
        self._runners.start(self.agent.capacity)
        drained = asyncio.create_task(self._drain(), name="drain")
        try:
            await drained
        finally:
            for task in (drained, *duties):
                task.cancel()
            await asyncio.gather(drained, *duties, return_exceptions=True)
            await self._runners.stop()
            await self._statistics.flush()
            await self.notifier.aclose()
            await self.agent.finish()

    async def _drain(self) -> None:
        """Once stopped: release the tasks that do not run, and after the grace period the others."""
        await self._stopping.wait()
        self._claim_loop.claiming = False
        deadline = time.monotonic() + self.grace
        # Until the turns in progress have ended, they may still bring tasks.
        while self._claimed.running or self._claim_loop.in_progress:
            if time.monotonic() >= deadline:
                break
            await self._release_waiting()
        now = time.monotonic()
        for running in list(self._claimed.running.values()):
            running.stop(Abort.SHUTTING_DOWN, now)
        while self.unfinished or self._claim_loop.in_progress:
            if time.monotonic() >= deadline + _SETTLE_SECONDS:
                log.error("tasks are left to the expiry of their leases", number=self.unfinished)
                return
            await self._release_waiting()

    async def _release_waiting(self) -> None:
        """Release the tasks that have not begun, including those that a turn still brought."""
        for task in self._claimed.withdraw(lambda _: True):
            self._completions.put(Attempt(task, TaskOutcome.RELEASED))
        self._completions.news.set()
        await asyncio.sleep(_GLANCE)
