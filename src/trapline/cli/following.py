"""Following a job from a terminal: how it gets on, and a Ctrl-C that pauses it."""

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

from trapline.pipeline.results import Counts
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow

_LOOKS = 20
_SAY_EVERY = 5.0


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
    """A bar on a terminal, a line now and then elsewhere, nothing when quiet."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._quiet = quiet
        self._said = time.monotonic()
        self._seen: deque[tuple[float, int]] = deque([(self._said, 0)], maxlen=_LOOKS)
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

    def show(self, job: JobRow, counts: Counts, pace: str = "") -> None:
        done = counts.completed + counts.failed + counts.skipped
        said = f"{counts.completed} {self._what}, {counts.remaining} queued, {counts.failed} failed"
        words = ", ".join(filter(None, (said, f"{self._rate(done):.0f}/s", pace)))
        total = max(done + counts.remaining, 1)
        self._bar.update(self._task, description=words, completed=done, total=total)
        plain = not self._quiet and not sys.stderr.isatty()
        if plain and (time.monotonic() - self._said > _SAY_EVERY or job.status in jobs.ENDED):
            self._said = time.monotonic()
            click.echo(words, err=True)

    def _rate(self, done: int) -> float:
        """Return how many were done a second, of late."""
        now = time.monotonic()
        self._seen.append((now, done))
        began, before = self._seen[0]
        return (done - before) / max(now - began, 0.1)
