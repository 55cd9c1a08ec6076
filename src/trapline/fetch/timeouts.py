"""Time-outs of exchanges.

A timer of the event loop for each stage of each request would cost more than the rest of a request,
so one tick checks all of them. A time-out is late by up to one tick, and never early.
"""

import asyncio
from types import TracebackType
from typing import Any, Self

from trapline.errors import ExitCode, VisitFailed
from trapline.model import FetchLimits

_TICK_SECONDS = 0.1


class DeadlineTimer:
    """Checks the running deadlines, ten times a second while there are any."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._running: set[Deadline] = set()
        self._tick: asyncio.TimerHandle | None = None

    def begin(self, deadline: "Deadline") -> None:
        self._running.add(deadline)
        if self._tick is None:
            self._tick = self.loop.call_later(_TICK_SECONDS, self._expire_due)

    def end(self, deadline: "Deadline") -> None:
        self._running.discard(deadline)

    def close(self) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def _expire_due(self) -> None:
        now = self.loop.time()
        for deadline in [deadline for deadline in self._running if deadline.due <= now]:
            self._running.discard(deadline)
            deadline.expire()
        more = bool(self._running)
        self._tick = self.loop.call_later(_TICK_SECONDS, self._expire_due) if more else None


class Deadline:
    """The deadline of one exchange at its present stage; `seconds` bounds the whole exchange."""

    __slots__ = (
        "_begun",
        "_end",
        "_expired",
        "_limits",
        "_pending",
        "_stage",
        "_task",
        "_timer",
        "due",
    )

    def __init__(self, timer: DeadlineTimer, limits: FetchLimits, seconds: float) -> None:
        self._timer = timer
        self._limits = limits
        self._begun = timer.loop.time()
        self._end = self._begun + seconds
        self._expired = False
        self._stage = ExitCode.CONNECT_TIMEOUT
        self.due = min(self._end, self._begun + limits.connect)

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a fetch runs inside a task")
        self._task: asyncio.Task[Any] = task
        self._pending = task.cancelling()
        self._timer.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.end(self)
        if not self._expired:
            return
        # Another cancellation of the task at the same time takes precedence.
        ours = self._task.uncancel() <= self._pending
        if ours and kind is asyncio.CancelledError:
            raise self._failure() from None

    @property
    def elapsed(self) -> float:
        return self._timer.loop.time() - self._begun

    def await_first_byte(self) -> None:
        self._stage = ExitCode.FIRST_BYTE_TIMEOUT
        self.due = min(self._end, self._timer.loop.time() + self._limits.first_byte)

    def await_end(self) -> None:
        self._stage = ExitCode.TOTAL_TIMEOUT
        self.due = self._end

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def _failure(self) -> VisitFailed:
        if self._stage is ExitCode.TOTAL_TIMEOUT or self.due == self._end:
            return VisitFailed(ExitCode.TOTAL_TIMEOUT, f"{round(self._limits.total, 2):g} s")
        connecting = self._stage is ExitCode.CONNECT_TIMEOUT
        seconds = self._limits.connect if connecting else self._limits.first_byte
        return VisitFailed(self._stage, f"{seconds:g} s")
