"""Supervisor: restarts a part of the process whatever it raises, after a pause that grows."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from trapline.db.connection import LOST
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.queue import metrics
from trapline.queue.finish import RETRYABLE

log = get_logger(__name__)

_SHORTEST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
# A part that ran for so many seconds is restarted after the shortest pause again.
_SOUND: Final = 10.0


async def supervise(part: str, work: Callable[[], Awaitable[object]]) -> None:
    """Run a part for ever: neither an unavailable server nor a bug ends it."""
    pause = _SHORTEST_PAUSE
    while True:
        started = time.monotonic()
        try:
            await work()
        except (*LOST, DatabaseUnavailable, *RETRYABLE) as error:
            log.warning("a part of the process waits for PostgreSQL", part=part, error=str(error))
        except Exception:
            metrics.RESTARTS.labels(part).inc()
            log.exception("a part of the process failed and is restarted", part=part)
        sound = time.monotonic() - started > _SOUND
        pause = _SHORTEST_PAUSE if sound else min(2 * pause, _LONGEST_PAUSE)
        await asyncio.sleep(pause)
