"""Watchdog of the event loop: how late its callbacks run, in /metrics and, when very late, in the log."""

import asyncio
from typing import Final

from prometheus_client import Histogram

from trapline import logs

log = logs.get_logger(__name__)

TICK_SECONDS: Final = 0.1
WARN_SECONDS: Final = 1.0
_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

DELAY: Final = Histogram(
    "trapline_event_loop_delay_seconds",
    "How late a timer of the event loop fired: other callbacks held it.",
    buckets=_BUCKETS,
)


async def watch_loop() -> None:
    """Measure until cancelled, ten times a second."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        delay = max(loop.time() - due, 0.0)
        DELAY.observe(delay)
        if delay >= WARN_SECONDS:
            log.warning("the event loop was blocked", seconds=round(delay, 2))
