"""Task runners: a pool of coroutines, each of which runs one claimed task after the other.

There are as many as the worker's concurrency, so a task costs no asyncio.Task of its own.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

from trapline.errors import ExitCode, TraplineError
from trapline.logs import get_logger
from trapline.queue.finish import Attempt, TaskResult, as_json, failed
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.retry_policy import TaskOutcome, decide
from trapline.queue.tasks import Task
from trapline.queue.worker.claimed_tasks import Abort, ClaimedTasks, RunningTask
from trapline.queue.worker.completion_buffer import CompletionBuffer
from trapline.queue.worker.statistics import Statistics

log = get_logger(__name__)

WATCH: Final = 0.25
# After so many tasks that did not wait for anything a runner yields to the event loop.
TASKS_PER_YIELD: Final = 64
# What the store hook sees even where a handler returned nothing: it may note a failure.
_STORED: Final = frozenset({TaskOutcome.COMPLETED, TaskOutcome.FAILED})
# A handler that does not stop for so long after its cancellation loses its runner.
CANCEL_TIMEOUT: Final = 5.0


class TimedOut(TraplineError):
    """The task took longer than its timeout."""


@dataclass(slots=True)
class TaskRunners:
    """The pool of runners of a worker."""

    kinds: Kinds
    claimed: ClaimedTasks
    completions: CompletionBuffer
    statistics: Statistics
    # Whether the worker has a store hook.
    storing: bool
    _runners: set[asyncio.Task[None]] = field(default_factory=set)
    _rng: random.Random = field(default_factory=random.Random)

    def start(self, count: int = 1) -> None:
        for _ in range(count):
            runner = asyncio.create_task(self._runner(), name="runner")
            self._runners.add(runner)
            runner.add_done_callback(self._runner_ended)

    def _runner_ended(self, runner: asyncio.Task[None]) -> None:
        """Replace a runner that a bug ended."""
        self._runners.discard(runner)
        if not runner.cancelled() and (error := runner.exception()) is not None:
            log.error("a runner failed and is replaced", error=repr(error))
            self.start()

    async def stop(self) -> None:
        """Cancel all runners."""
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
            while (task := self.claimed.take()) is None:
                await self.claimed.wait()
            await self._run_one(RunningTask(task, runner, time.monotonic()))
            streak += 1
            if streak % TASKS_PER_YIELD == 0:
                await asyncio.sleep(0)

    async def _run_one(self, running: RunningTask) -> None:
        """Run a task's handler and pass on the attempt, whatever the handler does."""
        task = running.task
        self.claimed.running[task.id] = running
        kind = self.kinds[task.kind]
        attempt: Attempt | None
        try:
            attempt = await self._attempt(task, kind)
        except asyncio.CancelledError:
            attempt = self._aborted(running)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the worker's boundary)
            attempt = self._failed(task, error)
        if self.claimed.running.pop(task.id, None) is running:
            self._ended(running, attempt, kind)
        else:
            # This runner was given up and replaced.
            raise asyncio.CancelledError

    async def _attempt(self, task: Task, kind: Kind) -> Attempt:
        if task.deadline is not None and task.deadline <= datetime.now(UTC):
            reason = "The task's own time was up before it began."
            return Attempt(task, TaskOutcome.FAILED, ExitCode.DEADLINE_PASSED, reason)
        assert kind.handler is not None  # noqa: S101 (the claimer refuses kinds without one)
        returned = await kind.handler(task)
        if returned is None:
            return Attempt(task)
        result = returned if isinstance(returned, TaskResult) else TaskResult(returned)
        if result.error is not None:
            return self._failed(task, result.error, structs.replace(result, children=()))
        # What is stored need not be JSON: the store hook returns the value that is.
        if not (self.storing and kind.stored):
            result = structs.replace(result, value=as_json(result.value))
        return Attempt(task, result=result)

    def _failed(
        self, task: Task, error: BaseException, result: TaskResult | None = None
    ) -> Attempt:
        decision = decide(
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
            outcome=decision.outcome.name,
            error=decision.error,
        )
        return failed(task, decision, result or TaskResult())

    def _aborted(self, running: RunningTask) -> Attempt | None:
        """Decide by the origin of the cancellation: the worker's abort, the handler, or the worker's end."""
        if running.abort is not None:
            running.runner.uncancel()
            return self._stopped(running)
        if running.runner.cancelling():
            raise asyncio.CancelledError
        return self._failed(running.task, TraplineError("The handler cancelled itself."))

    def _stopped(self, running: RunningTask) -> Attempt | None:
        """Return the attempt of an aborted task; None when its lease is lost."""
        task = running.task
        match running.abort:
            case Abort.LEASE_LOST:
                return None
            case Abort.JOB_ENDED:
                return Attempt(task, TaskOutcome.CANCELLED, ExitCode.CANCELLED)
            case Abort.SHUTTING_DOWN:
                return Attempt(task, TaskOutcome.RELEASED)
            case Abort.TIMED_OUT | None:
                return self._failed(task, TimedOut(f"It took longer than {task.timeout}."))

    def _ended(self, running: RunningTask, attempt: Attempt | None, kind: Kind) -> None:
        if attempt is None:
            self.completions.news.set()
            return
        self.statistics.count(kind.name, attempt.outcome, time.monotonic() - running.started)
        stored = (
            self.storing
            and kind.stored
            and (attempt.outcome in _STORED or attempt.result.value is not None)
        )
        self.completions.put(attempt, rich=stored or attempt.rich)

    async def enforce_timeouts(self) -> None:
        """Stop tasks that exceed their timeout, and replace runners whose handler does not stop."""
        while True:
            await asyncio.sleep(WATCH)
            now = time.monotonic()
            for running in list(self.claimed.running.values()):
                if running.abort is None:
                    if now - running.started > running.task.timeout.total_seconds():
                        running.stop(Abort.TIMED_OUT, now)
                elif now - running.aborted_at > CANCEL_TIMEOUT:
                    self._give_up(running)

    def _give_up(self, running: RunningTask) -> None:
        task = running.task
        log.error("a handler does not stop", task=task.id, kind=task.kind)
        del self.claimed.running[task.id]
        self._runners.discard(running.runner)
        self.start()
        running.runner.add_done_callback(_swallow)
        self._ended(running, self._stopped(running), self.kinds[task.kind])


def _swallow(runner: asyncio.Task[None]) -> None:
    """Retrieve the exception of a runner that was given up."""
    if not runner.cancelled():
        runner.exception()
