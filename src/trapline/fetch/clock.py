"""The time limits of exchanges.

A timer of the loop for each stage of each request would cost more than everything else here, so
one tick looks at all of them. Limits are late by up to that tick, and never early.
"""

import asyncio
from types import TracebackType
from typing import Any, Self

from trapline.errors import ExitCode, VisitFailed
from trapline.model import FetchLimits

_TICK_SECONDS = 0.1


class Watch:
    """Looks at the running clocks, ten times a second as long as there are any."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._running: set[Clock] = set()
        self._tick: asyncio.TimerHandle | None = None

    def begin(self, clock: "Clock") -> None:
        self._running.add(clock)
        if self._tick is None:
            self._tick = self.loop.call_later(_TICK_SECONDS, self._look)

    def end(self, clock: "Clock") -> None:
        self._running.discard(clock)

    def close(self) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def _look(self) -> None:
        now = self.loop.time()
        for clock in [clock for clock in self._running if clock.due <= now]:
            self._running.discard(clock)
            clock.expire()
        more = bool(self._running)
        self._tick = self.loop.call_later(_TICK_SECONDS, self._look) if more else None


class Clock:
    """What one exchange may still take, at its present stage; `seconds` bounds all of it."""

    __slots__ = (
        "_begun",
        "_deadline",
        "_expired",
        "_limits",
        "_pending",
        "_stage",
        "_task",
        "_watch",
        "due",
    )

    def __init__(self, watch: Watch, limits: FetchLimits, seconds: float) -> None:
        self._watch = watch
        self._limits = limits
        self._begun = watch.loop.time()
        self._deadline = self._begun + seconds
        self._expired = False
        self._stage = ExitCode.CONNECT_TIMEOUT
        self.due = min(self._deadline, self._begun + limits.connect)

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a fetch runs inside a task")
        self._task: asyncio.Task[Any] = task
        self._pending = task.cancelling()
        self._watch.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watch.end(self)
        if not self._expired:
            return
        # Someone else may have cancelled the task at the same time: then that is what counts.
        ours = self._task.uncancel() <= self._pending
        if ours and kind is asyncio.CancelledError:
            raise self._failure() from None

    @property
    def elapsed(self) -> float:
        return self._watch.loop.time() - self._begun

    def await_first_byte(self) -> None:
        self._stage = ExitCode.FIRST_BYTE_TIMEOUT
        self.due = min(self._deadline, self._watch.loop.time() + self._limits.first_byte)

    def await_end(self) -> None:
        self._stage = ExitCode.TOTAL_TIMEOUT
        self.due = self._deadline

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def _failure(self) -> VisitFailed:
        if self._stage is ExitCode.TOTAL_TIMEOUT or self.due == self._deadline:
            return VisitFailed(ExitCode.TOTAL_TIMEOUT, f"{round(self._limits.total, 2):g} s")
        connecting = self._stage is ExitCode.CONNECT_TIMEOUT
        seconds = self._limits.connect if connecting else self._limits.first_byte
        return VisitFailed(self._stage, f"{seconds:g} s")
