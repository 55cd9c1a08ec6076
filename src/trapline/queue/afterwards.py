"""What is finished behind an answer: attempts whose callers have all that they asked for.

They gather until none has come for a moment, so that callers who come one after the other share a
finishing transaction, and go at once when somebody needs what they hold or what they will have written.
"""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.logs import get_logger
from trapline.queue.finishing import Attempt

log = get_logger(__name__)

# When none has come for so long, those that have gathered go; and at the latest after so long, in a
# stream of them, or when they are so many. It is what a killed process can lose.
QUIET: Final = 0.05
LONGEST: Final = 0.2
ENOUGH: Final = 32
# Whoever answers while so many wait, waits too.
MOST: Final = 64
# How long a reader waits for what was answered before, and how often a failed finish is tried again.
_PATIENCE: Final = 20.0
_AGAIN: Final = 1.0
# Beyond a task's own time, until others take it for dead.
_GRACE: Final = timedelta(seconds=30)


@dataclass(slots=True, eq=False)
class _Pending:
    attempt: Attempt
    about: frozenset[Hashable]
    done: asyncio.Future[None]


class Afterwards:
    """Attempts of this process that were answered and are not finished yet."""

    def __init__(
        self,
        end: Callable[[Attempt], asyncio.Future[None]],
        *,
        quiet: float = QUIET,
        longest: float = LONGEST,
        enough: int = ENOUGH,
        most: int = MOST,
    ) -> None:
        self._end = end
        self._quiet = quiet
        self._longest = longest
        self._enough = enough
        self._most = most
        self._pending: set[_Pending] = set()
        self._gathered: list[_Pending] = []
        self._latest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pending)

    async def add(self, attempt: Attempt, about: frozenset[Hashable]) -> None:
        """Have an attempt finished soon; `about` is what it can be waited for by.

        It is on its way when this is called; who is made to wait then is ahead of the database.
        """
        loop = asyncio.get_running_loop()
        pending = _Pending(attempt, about, loop.create_future())
        self._pending.add(pending)
        self._gathered.append(pending)
        if len(self._gathered) == 1:
            self._latest = loop.time() + self._longest
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(min(loop.time() + self._quiet, self._latest), self.hurry)
        if len(self._gathered) >= self._enough:
            self.hurry()
        while len(self._pending) > self._most:
            self.hurry()
            await asyncio.wait({p.done for p in self._pending}, return_when=asyncio.FIRST_COMPLETED)

    def hurry(self) -> None:
        """Finish now what has gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        gathered, self._gathered = self._gathered, []
        for pending in gathered:
            self._send(pending)

    async def settled(self, about: Hashable | None = None) -> bool:
        """Wait until what was answered before now is stored; False if nothing was to be waited for.

        All of it, or what is about one thing. A database that is away is not waited for for ever.
        """
        found = {p.done for p in self._pending if about is None or about in p.about}
        if not found:
            return False
        self.hurry()
        await asyncio.wait(found, timeout=_PATIENCE)
        return True

    async def aclose(self, seconds: float) -> None:
        """Finish what is left, within a time."""
        left = {p.done for p in self._pending}
        self.hurry()
        if left:
            await asyncio.wait(left, timeout=seconds)
        if self._pending:
            log.error("scrapes were answered but not stored", number=len(self._pending))

    def _send(self, pending: _Pending) -> None:
        ending = self._end(pending.attempt)
        ending.add_done_callback(lambda ended: self._ended(pending, ended))

    def _ended(self, pending: _Pending, ending: asyncio.Future[None]) -> None:
        task = pending.attempt.task
        error = None if ending.cancelled() else ending.exception()
        latest = (task.deadline or datetime.min.replace(tzinfo=UTC)) + _GRACE
        if error is not None and datetime.now(UTC) < latest:
            log.warning("finishing is tried again", task=task.id, error=repr(error))
            asyncio.get_running_loop().call_later(_AGAIN, self._send, pending)
            return
        if error is not None or not pending.attempt.held:
            # Whoever looks for dead tasks has ended it, or will.
            log.error("a scrape was answered but not stored", job=str(task.job_id))
        self._pending.discard(pending)
        pending.done.set_result(None)
