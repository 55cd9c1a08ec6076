"""Runners: each takes one task after the other from the worker's hands and runs its handler.

They are as many as the worker's concurrency, so a task costs no asyncio.Task of its own.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from trapline.errors import ExitCode, TraplineError
from trapline.logs import get_logger
from trapline.queue.finishing import Attempt, Finished, written
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.leases import Leases
from trapline.queue.outbox import Outbox
from trapline.queue.retries import Verdict, judge
from trapline.queue.running import Abort, Hands, Running
from trapline.queue.statistics import Statistics
from trapline.queue.tasks import Task

log = get_logger(__name__)

WATCH: Final = 0.25
# A runner lets others run after so many tasks that did not wait for anything.
TASKS_PER_BREATH: Final = 64
# What the store hook sees even where a handler returned nothing: it may note a failure.
_STORED: Final = frozenset({Verdict.COMPLETED, Verdict.FAILED})
# How long a handler may go on after it was cancelled, before its runner is given up.
PATIENCE: Final = 5.0


class TimedOut(TraplineError):
    """The task took longer than its timeout."""


@dataclass(slots=True)
class Runners:
    """All runners of a worker, and what they know of its tasks."""

    kinds: Kinds
    hands: Hands
    leases: Leases
    outbox: Outbox
    statistics: Statistics
    # Whether there is a hook that stores results.
    storing: bool
    _runners: set[asyncio.Task[None]] = field(default_factory=set)
    _rng: random.Random = field(default_factory=random.Random)

    def hire(self, count: int = 1) -> None:
        for _ in range(count):
            runner = asyncio.create_task(self._runner(), name="runner")
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)

    async def dismiss(self) -> None:
        """Stop all runners, whatever they are at."""
        runners = list(self._runners)
        for runner in runners:
            runner.cancel()
        await asyncio.gather(*runners, return_exceptions=True)

    async def _runner(self) -> None:
        """Run one task after the other."""
        runner = asyncio.current_task()
        assert runner is not None  # noqa: S101 (this is a coroutine of a task)
        streak = 0
        while True:
            while (task := self.hands.take()) is None:
                await self.hands.wait()
            await self._run_one(Running(task, runner, time.monotonic()))
            streak += 1
            if streak % TASKS_PER_BREATH == 0:
                await asyncio.sleep(0)

    async def _run_one(self, running: Running) -> None:
        """Run a task's handler and hand on what it came to, whatever it does."""
        task = running.task
        self.hands.running[task.id] = running
        kind = self.kinds[task.kind]
        attempt: Attempt | None
        try:
            attempt = await self._attempt(task, kind)
        except asyncio.CancelledError:
            attempt = self._aborted(running)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the worker's boundary)
            attempt = self._failed(task, error)
        if self.hands.running.pop(task.id, None) is running:
            self._ended(running, attempt, kind)
        else:
            # Given up long ago, and replaced: this runner has no place any more.
            raise asyncio.CancelledError

    async def _attempt(self, task: Task, kind: Kind) -> Attempt:
        if task.deadline is not None and task.deadline <= datetime.now(UTC):
            reason = "The task's own time was up before it began."
            return Attempt(task, Verdict.FAILED, ExitCode.DEADLINE_PASSED, reason)
        assert kind.handler is not None  # noqa: S101 (the claimer refuses kinds without one)
        value = await kind.handler(task)
        if value is None:
            return Attempt(task)
        # What is stored need not be JSON: the store hook says what its result is.
        stored = self.storing and kind.stored
        if not isinstance(value, Finished):
            return Attempt(task, value=value, result=None if stored else written(value))
        if value.error is not None:
            attempt = self._failed(task, value.error)
            attempt.value, attempt.gate = value.result, value.gate
            attempt.events = list(value.events)
            return attempt
        return Attempt(
            task,
            value=value.result,
            result=None if stored else written(value.result),
            children=list(value.children),
            events=list(value.events),
            gate=value.gate,
        )

    def _failed(self, task: Task, error: BaseException) -> Attempt:
        judgement = judge(
            error,
            attempt=task.attempt,
            max_attempts=task.max_attempts,
            policy=self.kinds[task.kind].retry,
            now=datetime.now(UTC),
            rng=self._rng,
        )
        log.info(
            "task failed",
            task=task.id,
            kind=task.kind,
            attempt=task.attempt,
            verdict=judgement.verdict.name,
            error=judgement.error,
        )
        reason = judgement.error.replace("\x00", "")
        return Attempt(task, judgement.verdict, judgement.code, reason, judgement.run_at)

    def _aborted(self, running: Running) -> Attempt | None:
        """Decide by who cancelled the handler: we, it, or the end of the whole worker."""
        if running.abort is not None:
            running.runner.uncancel()
            return self._stopped(running)
        if running.runner.cancelling():
            raise asyncio.CancelledError
        return self._failed(running.task, TraplineError("The handler cancelled itself."))

    def _stopped(self, running: Running) -> Attempt | None:
        """Return what an aborted task came to; nothing when it is no longer ours."""
        task = running.task
        match running.abort:
            case Abort.LEASE_LOST:
                return None
            case Abort.JOB_ENDED:
                return Attempt(task, Verdict.CANCELLED, ExitCode.CANCELLED)
            case Abort.SHUTTING_DOWN:
                return Attempt(task, Verdict.RELEASED)
            case Abort.TIMED_OUT | None:
                return self._failed(task, TimedOut(f"It took longer than {task.timeout}."))

    def _ended(self, running: Running, attempt: Attempt | None, kind: Kind) -> None:
        if attempt is None:
            self.leases.let_go(running.task.lease_id)
            self.outbox.news.set()
            return
        self.statistics.count(kind.name, attempt.verdict, time.monotonic() - running.started)
        stored = (
            self.storing
            and kind.stored
            and (attempt.verdict in _STORED or attempt.value is not None)
        )
        self.outbox.put(attempt, rich=stored or attempt.rich)

    async def watch(self) -> None:
        """Stop tasks that take too long, and give up runners whose handler will not stop."""
        while True:
            await asyncio.sleep(WATCH)
            now = time.monotonic()
            for running in list(self.hands.running.values()):
                if running.abort is None:
                    if now - running.started > running.task.timeout.total_seconds():
                        running.stop(Abort.TIMED_OUT, now)
                elif now - running.aborted_at > PATIENCE:
                    self._give_up(running)

    def _give_up(self, running: Running) -> None:
        task = running.task
        log.error("a handler does not stop", task=task.id, kind=task.kind)
        del self.hands.running[task.id]
        self._runners.discard(running.runner)
        self.hire()
        running.runner.add_done_callback(_swallow)
        self._ended(running, self._stopped(running), self.kinds[task.kind])


def _swallow(runner: asyncio.Task[None]) -> None:
    """Take note of a given-up runner's end, whatever it was."""
    if not runner.cancelled():
        runner.exception()
