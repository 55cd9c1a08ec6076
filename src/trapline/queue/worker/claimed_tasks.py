"""The claimed tasks of a worker: buffered for a runner, running, or to be aborted."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from trapline.model import JobId
from trapline.queue.tasks import Task


class Abort(Enum):
    """Why a task that runs is stopped."""

    TIMED_OUT = auto()
    LEASE_LOST = auto()
    JOB_ENDED = auto()
    SHUTTING_DOWN = auto()


@dataclass(slots=True, eq=False)
class RunningTask:
    """A task that a runner is at work on."""

    task: Task
    runner: asyncio.Task[None]
    started: float
    abort: Abort | None = None
    aborted_at: float = 0.0

    def stop(self, why: Abort, now: float) -> None:
        """Cancel the handler, once."""
        if self.abort is None:
            self.abort, self.aborted_at = why, now
            self.runner.cancel()


class ClaimedTasks:
    """All tasks that this worker has claimed and not yet finished."""

    def __init__(self) -> None:
        self.buffer: deque[Task] = deque()
        self.running: dict[int, RunningTask] = {}
        self._idle: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self.buffer) + len(self.running)

    def jobs(self) -> set[JobId]:
        return {task.job_id for task in self}

    def __iter__(self) -> Iterator[Task]:
        yield from self.buffer
        yield from (running.task for running in self.running.values())

    def put(self, tasks: Iterable[Task]) -> None:
        """Add claimed tasks and wake as many runners."""
        before = len(self.buffer)
        self.buffer.extend(tasks)
        for _ in range(min(len(self.buffer) - before, len(self._idle))):
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)

    def take(self) -> Task | None:
        """Return the next task; None when there is none."""
        return self.buffer.popleft() if self.buffer else None

    async def wait(self) -> None:
        """Wait until there may be a task again."""
        idle = asyncio.get_running_loop().create_future()
        self._idle.append(idle)
        await idle

    def withdraw(self, unwanted: Callable[[Task], bool]) -> list[Task]:
        """Remove tasks from the buffer that are not to run after all."""
        out = [task for task in self.buffer if unwanted(task)]
        if out:
            self.buffer = deque(task for task in self.buffer if not unwanted(task))
        return out
