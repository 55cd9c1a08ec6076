"""Progress of a job on a terminal; Ctrl-C pauses the job."""

import asyncio
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trapline.pipeline.reports.job_results import PageCounts
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow

_LOOKS = 20
_SAY_EVERY = 5.0
_SHORTEST_ETA = 30.0


@asynccontextmanager
async def pausing() -> AsyncIterator[asyncio.Event]:
    """Turn the first Ctrl-C into an event; the second one ends the program as usual."""
    paused = asyncio.Event()
    loop = asyncio.get_running_loop()

    def pause() -> None:
        paused.set()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, pause)
    try:
        yield paused
    finally:
        loop.remove_signal_handler(signal.SIGINT)


class Display:
    """A progress bar on a terminal, occasional lines elsewhere, nothing when quiet."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._quiet = quiet
        self._said = time.monotonic()
        self._seen: deque[tuple[float, int]] = deque(maxlen=_LOOKS)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=quiet or not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self._bar.add_task("beginning", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def show(self, job: JobRow, counts: PageCounts, pace: str = "") -> None:
        done = counts.completed + counts.failed + counts.skipped
        line = f"{counts.completed} {self._what}, {counts.remaining} queued, {counts.failed} failed"
        rate = self._rate(done)
        words = ", ".join(filter(None, (line, f"{rate:.0f}/s", _eta(counts.remaining, rate), pace)))
        total = max(done + counts.remaining, 1)
        self._bar.update(self._task, description=words, completed=done, total=total)
        plain = not self._quiet and not sys.stderr.isatty()
        if plain and (time.monotonic() - self._said > _SAY_EVERY or job.status in jobs.ENDED):
            self._said = time.monotonic()
            click.echo(words, err=True)

    def _rate(self, done: int) -> float:
        """Return the recent number of tasks per second; tasks of earlier runs do not count."""
        now = time.monotonic()
        self._seen.append((now, done))
        began, before = self._seen[0]
        return (done - before) / max(now - began, 0.1)


def _eta(remaining: int, rate: float) -> str:
    """Say how long the queued tasks take at this rate, once that is worth saying."""
    seconds = remaining / rate if rate else 0.0
    if seconds < _SHORTEST_ETA:
        return ""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes} min" if hours else f"about {max(minutes, 1)} min"
