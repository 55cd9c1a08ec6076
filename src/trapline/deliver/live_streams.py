"""Live streams of job events: one reader of the event log for each job, shared by its subscribers.

A subscriber resumes from any event number. Recent events are shared; a subscriber that is further
behind reads the log itself until it has caught up.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from trapline.db.connection import LOST
from trapline.deliver.event import Event
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.model import JobId, OrganisationId

log = get_logger(__name__)

POLL: Final = 1.0
# Seconds after which a subscriber of a silent job gets an empty list, to check that its client still listens.
HEARTBEAT: Final = 15.0
_SHARED_EVENTS: Final = 500
_BATCH: Final = 500

Read = Callable[[OrganisationId, JobId, int, int], Awaitable[Sequence[Event]]]
"""Reads a job's events after a number, up to a maximum."""


@dataclass(slots=True)
class _JobStream:
    """The latest events of one job, read once for all its subscribers."""

    organisation_id: OrganisationId
    job_id: JobId
    position: int
    subscribers: int = 0
    recent: deque[Event] = field(default_factory=lambda: deque(maxlen=_SHARED_EVENTS))
    # `notified` says that the log has new events; `arrived` that they are read, and is then replaced.
    notified: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.Task[None] | None = None

    def after(self, number: int) -> list[Event] | None:
        """Return the shared events after a number; None when they do not reach back that far."""
        if number >= self.position:
            return []
        if not self.recent or self.recent[0].number > number + 1:
            return None
        return [event for event in self.recent if event.number > number]

    async def read_forever(self, read: Read, poll: float) -> None:
        while True:
            self.notified.clear()
            try:
                events = await read(self.organisation_id, self.job_id, self.position, _BATCH)
            except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                log.warning("a live stream waits for PostgreSQL", error=str(error))
                events = []
            if events:
                self.recent.extend(events)
                self.position = events[-1].number
                arrived, self.arrived = self.arrived, asyncio.Event()
                arrived.set()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(poll):
                    await self.notified.wait()


@dataclass(slots=True)
class LiveStreams:
    """The live streams of this process."""

    read: Read
    poll: float = POLL
    heartbeat: float = HEARTBEAT
    _streams: dict[JobId, _JobStream] = field(default_factory=dict)

    def wake(self, job_ids: Iterable[str]) -> None:
        """Read the log of these jobs now: they have new events."""
        if not self._streams:
            return
        wanted = frozenset(job_ids)
        for job_id, stream in self._streams.items():
            if str(job_id) in wanted:
                stream.notified.set()

    async def follow(
        self, organisation_id: OrganisationId, job_id: JobId, after: int = 0
    ) -> AsyncIterator[list[Event]]:
        """Yield a job's events after a number as they come, and an empty list as a heartbeat."""
        stream = self._subscribe(organisation_id, job_id, after)
        try:
            while True:
                arrived = stream.arrived
                events = stream.after(after)
                if events is None:
                    events = list(await self.read(organisation_id, job_id, after, _BATCH))
                if events:
                    after = events[-1].number
                    yield events
                    continue
                try:
                    async with asyncio.timeout(self.heartbeat):
                        await arrived.wait()
                except TimeoutError:
                    yield []
        finally:
            self._unsubscribe(stream)

    def _subscribe(self, organisation_id: OrganisationId, job_id: JobId, after: int) -> _JobStream:
        stream = self._streams.get(job_id)
        if stream is None:
            stream = self._streams[job_id] = _JobStream(organisation_id, job_id, after)
            stream.reader = asyncio.create_task(
                stream.read_forever(self.read, self.poll), name=f"live stream {job_id}"
            )
        stream.subscribers += 1
        return stream

    def _unsubscribe(self, stream: _JobStream) -> None:
        stream.subscribers -= 1
        if not stream.subscribers:
            self._streams.pop(stream.job_id, None)
            if stream.reader is not None:
                stream.reader.cancel()
