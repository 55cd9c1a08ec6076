"""Write-behind for answered scrapes: finished within 200 ms of the answer, in batches.

A batch collects until no attempt has come for a moment, so that successive callers share a finishing
transaction. It is flushed at once when someone needs its slots or the rows that it will write.
"""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.logs import get_logger
from trapline.queue.finish import Attempt

log = get_logger(__name__)

# A batch is flushed when no attempt has come for QUIET seconds, when its first one is LONGEST seconds
# old, or when it has ENOUGH attempts. A killed process can lose that much.
QUIET: Final = 0.05
LONGEST: Final = 0.2
ENOUGH: Final = 32
# A caller that would add to so many pending attempts waits.
MOST: Final = 64
# How long a reader waits for pending attempts, and the pause before a failed finish is retried.
_READ_TIMEOUT: Final = 20.0
_RETRY_PAUSE: Final = 1.0
# Beyond a task's own time, until the sweep for stale leases takes it.
_GRACE: Final = timedelta(seconds=30)


@dataclass(slots=True, eq=False)
class _Pending:
    attempt: Attempt
    about: frozenset[Hashable]
    done: asyncio.Future[None]


class WriteBehind:
    """Attempts of this process whose callers are answered and that are not finished yet."""

    def __init__(
        self,
        end: Callable[[Attempt], asyncio.Future[Attempt | None]],
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
        self._collected: list[_Pending] = []
        self._latest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pending)

    async def add(self, attempt: Attempt, about: frozenset[Hashable]) -> None:
        """Finish an attempt soon; `about` are the keys by which `wait_stored` finds it.

        The attempt is taken at once; the call waits while too many others are pending.
        """
        loop = asyncio.get_running_loop()
        pending = _Pending(attempt, about, loop.create_future())
        self._pending.add(pending)
        self._collected.append(pending)
        if len(self._collected) == 1:
            self._latest = loop.time() + self._longest
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(min(loop.time() + self._quiet, self._latest), self.flush)
        if len(self._collected) >= self._enough:
            self.flush()
        while len(self._pending) > self._most:
            self.flush()
            await asyncio.wait({p.done for p in self._pending}, return_when=asyncio.FIRST_COMPLETED)

    def flush(self) -> None:
        """Finish the collected attempts now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        collected, self._collected = self._collected, []
        for pending in collected:
            self._send(pending)

    async def wait_stored(self, about: Hashable | None = None) -> bool:
        """Wait until pending attempts are stored, all or those with a key; False if there are none.

        The wait is bounded, for when the database is unavailable.
        """
        found = {p.done for p in self._pending if about is None or about in p.about}
        if not found:
            return False
        self.flush()
        await asyncio.wait(found, timeout=_READ_TIMEOUT)
        return True

    async def aclose(self, seconds: float) -> None:
        """Finish the pending attempts, within a time."""
        left = {p.done for p in self._pending}
        self.flush()
        if left:
            await asyncio.wait(left, timeout=seconds)
        if self._pending:
            log.error("scrapes were answered but not stored", number=len(self._pending))

    def _send(self, pending: _Pending) -> None:
        ending = self._end(pending.attempt)
        ending.add_done_callback(lambda ended: self._ended(pending, ended))

    def _ended(self, pending: _Pending, ending: asyncio.Future[Attempt | None]) -> None:
        task = pending.attempt.task
        error = None if ending.cancelled() else ending.exception()
        latest = (task.deadline or datetime.min.replace(tzinfo=UTC)) + _GRACE
        if error is not None and datetime.now(UTC) < latest:
            log.warning("finishing is tried again", task=task.id, error=repr(error))
            asyncio.get_running_loop().call_later(_RETRY_PAUSE, self._send, pending)
            return
        if error is not None or ending.cancelled() or ending.result() is None:
            # The sweep for stale leases has ended it, or will.
            log.error("a scrape was answered but not stored", job=str(task.job_id))
        self._pending.discard(pending)
        pending.done.set_result(None)
