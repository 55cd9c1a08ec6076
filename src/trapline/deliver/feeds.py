"""Live feeds of jobs: one reader of the event log per job, however many watch it.

A watcher resumes from any event number. What the reader has lately read is shared; a watcher that
is further behind reads the log by itself until it has caught up.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from trapline.db.connection import LOST
from trapline.deliver.happening import Happening
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.model import JobId, OrganisationId

log = get_logger(__name__)

POLL: Final = 1.0
# How often a watcher of a silent job is given nothing, to look whether its client is still there.
BREATH: Final = 15.0
_SHARED: Final = 500
_BATCH: Final = 500

Read = Callable[[OrganisationId, JobId, int, int], Awaitable[Sequence[Happening]]]
"""Reads a job's events after a number, at most so many."""


@dataclass(slots=True)
class _Feed:
    """What the watchers of one job share: the latest events, read once."""

    organisation_id: OrganisationId
    job_id: JobId
    position: int
    watchers: int = 0
    recent: deque[Happening] = field(default_factory=lambda: deque(maxlen=_SHARED))
    # Set from outside: there is news. Set from inside, then replaced: it has been read.
    news: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.Task[None] | None = None

    def after(self, number: int) -> list[Happening] | None:
        """Return the shared events after a number; None when they do not reach back that far."""
        if number >= self.position:
            return []
        if not self.recent or self.recent[0].number > number + 1:
            return None
        return [happening for happening in self.recent if happening.number > number]

    async def keep_reading(self, read: Read, poll: float) -> None:
        while True:
            self.news.clear()
            try:
                found = await read(self.organisation_id, self.job_id, self.position, _BATCH)
            except (*LOST, DatabaseUnavailable) as error:
                log.warning("a feed waits for PostgreSQL", error=str(error))
                found = []
            if found:
                self.recent.extend(found)
                self.position = found[-1].number
                arrived, self.arrived = self.arrived, asyncio.Event()
                arrived.set()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(poll):
                    await self.news.wait()


@dataclass(slots=True)
class Feeds:
    """The feeds that are watched in this process."""

    read: Read
    poll: float = POLL
    breath: float = BREATH
    _feeds: dict[JobId, _Feed] = field(default_factory=dict)

    def wake(self, job_ids: Iterable[str]) -> None:
        """Hear that there is news of jobs."""
        if not self._feeds:
            return
        wanted = frozenset(job_ids)
        for job_id, feed in self._feeds.items():
            if str(job_id) in wanted:
                feed.news.set()

    async def follow(
        self, organisation_id: OrganisationId, job_id: JobId, after: int = 0
    ) -> AsyncIterator[list[Happening]]:
        """Give a job's events after a number as they come, and an empty list while none do."""
        feed = self._watched(organisation_id, job_id, after)
        try:
            while True:
                arrived = feed.arrived
                found = feed.after(after)
                if found is None:
                    found = list(await self.read(organisation_id, job_id, after, _BATCH))
                if found:
                    after = found[-1].number
                    yield found
                    continue
                try:
                    async with asyncio.timeout(self.breath):
                        await arrived.wait()
                except TimeoutError:
                    yield []
        finally:
            self._left(feed)

    def _watched(self, organisation_id: OrganisationId, job_id: JobId, after: int) -> _Feed:
        feed = self._feeds.get(job_id)
        if feed is None:
            feed = self._feeds[job_id] = _Feed(organisation_id, job_id, after)
            feed.reader = asyncio.create_task(
                feed.keep_reading(self.read, self.poll), name=f"feed {job_id}"
            )
        feed.watchers += 1
        return feed

    def _left(self, feed: _Feed) -> None:
        feed.watchers -= 1
        if not feed.watchers:
            self._feeds.pop(feed.job_id, None)
            if feed.reader is not None:
                feed.reader.cancel()
