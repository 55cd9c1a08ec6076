"""The claim loop: each turn finishes ended attempts and claims new tasks in one statement.

Two turns are in progress at a time, each on its own connection: while PostgreSQL works on one, this
process runs the tasks that the other claimed.
"""

import asyncio
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

from trapline.db.connection import LOST
from trapline.errors import DatabaseUnavailable, ExitCode
from trapline.logs import get_logger
from trapline.model import JobId
from trapline.queue import metrics
from trapline.queue.agents import Agent
from trapline.queue.finish import RETRYABLE, Attempt, Finisher
from trapline.queue.notify import Notifier
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.tasks import Task
from trapline.queue.worker.claim import Claim, Claimer
from trapline.queue.worker.claimed_tasks import ClaimedTasks
from trapline.queue.worker.completion_buffer import CompletionBuffer
from trapline.queue.worker.lanes import LaneRequest, Lanes

log = get_logger(__name__)

AT_ONCE: Final = 2
PARTS: Final = 3
# While a turn is under way, another one begins when it has so much to finish or to claim.
WORTH_A_TURN: Final = 200
LONGEST_PAUSE: Final = 1.0
# Claimed ahead: what is done in this time, at most so many.
AHEAD_SECONDS: Final = 0.05
MOST_AHEAD: Final = 3_000
# So many times what runs may wait to be stored: one batch that PostgreSQL writes, and one that gathers.
STORED_BESIDE: Final = 2
UNKNOWN_KIND_PAUSE: Final = timedelta(seconds=5)
# A worker that is nearly full asks for the little that it has room for only so often, and stores what
# has ended in batches that took so long to gather: a statement costs as much as several tasks.
PATIENCE: Final = 0.1
_GLANCE: Final = 0.02
_PAUSE: Final = 0.2


class Throughput:
    """How many tasks a second this worker completes, and so how many it claims ahead."""

    def __init__(self) -> None:
        self.ahead = 0
        self._rate = 0.0
        self._since = time.monotonic()
        self._done = 0

    def count(self, done: int, now: float) -> None:
        self._done += done
        seconds = now - self._since
        if seconds < AHEAD_SECONDS / 10:
            return
        share = min(1.0, 10 * seconds)
        self._rate += share * (self._done / seconds - self._rate)
        self._since, self._done = now, 0
        self.ahead = min(MOST_AHEAD, round(self._rate * AHEAD_SECONDS))


@dataclass(slots=True)
class ClaimLoop:
    """The claim loop of one worker."""

    agent: Agent
    claimer: Claimer
    finisher: Finisher
    lanes: Lanes
    claimed: ClaimedTasks
    completions: CompletionBuffer
    notifier: Notifier
    # Set when there may be new lanes to look at.
    refresh: asyncio.Event
    concurrency: int
    claiming: bool = True
    in_progress: int = 0
    # How many tasks the turns in progress ask for.
    _requested: int = 0
    # How many attempts are being stored just now.
    _storing: int = 0
    # When the last turn began.
    _turned_at: float = 0.0
    _throughput: Throughput = field(default_factory=Throughput)

    def unfinished(self) -> int:
        return len(self.claimed) + len(self.completions)

    def _room(self) -> int:
        """How many more tasks may be claimed.

        Attempts that wait to be stored occupy no runner, so they do not count in full: otherwise
        handlers and PostgreSQL would wait for each other in turn.
        """
        stored = min(len(self.completions.rich) + self._storing, STORED_BESIDE * self.concurrency)
        running = self.unfinished() - stored
        return self.concurrency + self._throughput.ahead - running - self._requested

    def on_gate_release(self, gate_ids: Sequence[int]) -> None:
        """Let the lanes that wait for these gates be claimed from again."""
        self.lanes.free((), gate_ids, time.monotonic())
        self.completions.news.set()

    async def run(self) -> None:
        """Repeat turns for ever."""
        while True:
            attempts, requests = self._next()
            if attempts or requests:
                await self._turn(attempts, requests)
            else:
                await self._pause()

    def _next(self) -> tuple[list[Attempt], list[LaneRequest]]:
        """Choose the attempts and lanes of the next turn; none, if the turn in progress suffices."""
        ended = len(self.completions.plain)
        # Each attempt that is finished makes room for a task.
        room = self._room() + ended if self.claiming else 0
        if self.in_progress and max(ended, room) < WORTH_A_TURN:
            return [], []
        if not ended and self._can_wait(room):
            return [], []
        # One part is claimed while another runs and a third is being finished.
        part = (self.concurrency + self._throughput.ahead) // PARTS
        room = min(room, max(self.concurrency, part))
        attempts = self.completions.take()
        return attempts, self.lanes.pick(room, time.monotonic()) if room > 0 else []

    def _can_wait(self, room: int) -> bool:
        """Whether the worker has enough tasks to claim more a little later."""
        return room < self._few and time.monotonic() < self._turned_at + PATIENCE

    @property
    def _few(self) -> int:
        """Less room than this is not worth a turn at once."""
        return self.concurrency // 4

    async def _pause(self) -> None:
        """Wait for an attempt to end, for a notice, or for a gate to open."""
        timeout, room = LONGEST_PAUSE, self._room()
        if self.claiming and room > 0 and not self.in_progress:
            now, next_at = time.monotonic(), self.lanes.next_at()
            if next_at is not None:
                timeout = min(timeout, next_at - now)
            if self._can_wait(room):
                timeout = min(timeout, self._turned_at + PATIENCE - now)
        self.completions.news.clear()
        try:
            async with asyncio.timeout(max(timeout, 0.001)):
                await self.completions.news.wait()
        except TimeoutError:
            return

    async def _turn(self, attempts: Sequence[Attempt], requests: Sequence[LaneRequest]) -> None:
        asked = sum(request.take for request in requests)
        self.in_progress += 1
        self._requested += asked
        self._turned_at = time.monotonic()
        try:
            with metrics.Stopwatch(metrics.TURN):
                claim = await self.claimer.finish_and_claim(self.agent.id, attempts, requests)
        except (*LOST, DatabaseUnavailable, *RETRYABLE, asyncpg.PostgresError) as error:
            log.warning("a turn is retried", error=str(error))
            self.lanes.on_claim_failed(requests, time.monotonic())
            await asyncio.sleep(_PAUSE if isinstance(error, LOST) else 0)
            await self._settle(attempts)
            return
        except BaseException:
            # A bug, or the worker's end.
            self.completions.settled(attempts)
            raise
        finally:
            self.in_progress -= 1
            self._requested -= asked
            self.completions.news.set()
        self._settled(attempts, claim.news)
        self._take(claim)

    def _take(self, claim: Claim) -> None:
        self.claimed.put(claim.tasks)
        for task in claim.unrunnable:
            self._refuse(task)
        metrics.CLAIMED.set(len(self.claimed))

    def _refuse(self, task: Task) -> None:
        """Release a task of a kind that is not known here; fail one whose payload is not of its kind."""
        if isinstance(task.payload, Exception):
            reason = f"The payload does not fit the kind any more: {task.payload}"
            self.completions.put(Attempt(task, TaskOutcome.FAILED, ExitCode.UNEXPECTED, reason))
        else:
            later = datetime.now(UTC) + UNKNOWN_KIND_PAUSE
            self.completions.put(Attempt(task, TaskOutcome.RELEASED, run_at=later))

    async def _settle(self, attempts: Sequence[Attempt]) -> None:
        """Finish attempts that were already counted as settling."""
        if not attempts:
            return
        try:
            with metrics.Stopwatch(metrics.FINISH):
                finished = await self.finisher.finish(attempts)
        except BaseException:
            # Their leases are no longer renewed: the tasks stall and run again.
            self.completions.settled(attempts)
            raise
        more = {a.task.job_id for a in finished.attempts.values() if a.result.children}
        self._settled(attempts, finished.news, more)

    def _settled(
        self,
        attempts: Sequence[Attempt],
        news: Sequence[JobId],
        more: AbstractSet[JobId] = frozenset(),
    ) -> None:
        """Update the worker's memory: finished attempts, jobs with new events, jobs with more tasks."""
        self.completions.settled(attempts)
        now = time.monotonic()
        self._throughput.count(len(attempts), now)
        if attempts:
            self.lanes.free(
                (attempt.task.job_id for attempt in attempts),
                (attempt.task.gate_id for attempt in attempts),
                now,
            )
        self.notifier.notify(ready=bool(more), jobs=news)
        if more:
            # Most of them are in lanes that are known here; the refresh finds the others.
            self.lanes.on_new_tasks(more, now)
            self.refresh.set()

    async def store_results(self) -> None:
        """Finish the attempts whose results are stored, in batches, beside the turns."""
        while True:
            await self.completions.to_store_event.wait()
            self.completions.to_store_event.clear()
            while self.completions.rich:
                await self._fill_batch()
                attempts = self.completions.take_to_store()
                self._storing = len(attempts)
                try:
                    await self._settle(attempts)
                finally:
                    self._storing = 0
                    self.completions.news.set()

    async def _fill_batch(self) -> None:
        """Let a batch grow while at least half of the runners are busy: they do not wait for it."""
        half = self.concurrency // 2
        for _ in range(round(PATIENCE / _GLANCE)):
            busy = len(self.claimed.running) >= half
            if len(self.completions.rich) >= half or not busy or not self.claiming:
                return
            await asyncio.sleep(_GLANCE)
