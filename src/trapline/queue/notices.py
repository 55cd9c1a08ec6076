"""NOTIFY after commit, coalesced per process, and LISTEN on the process's own connection.

A notice is a hint: whoever waits also polls, so one that is lost costs a second, not the work.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from trapline.db.connection import LOST, Connection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.model import JobId

log = get_logger(__name__)

READY: Final = "trapline_ready"
JOB: Final = "trapline_job"

# Long enough to gather a burst, too short to be felt.
_GATHER: Final = 0.002
# A notice is no promise: nobody need wait until it is on the disk.
_NOTIFY: Final = (
    "SELECT set_config('synchronous_commit', 'off', true), pg_notify(name, text)"
    " FROM unnest($1::text[], $2::text[]) AS n (name, text)"
)
# A payload has at most 8,000 bytes.
_JOBS_PER_NOTICE: Final = 200


class Bell:
    """Rings for other processes, at most once every few milliseconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ready = False
        self._jobs: set[JobId] = set()
        self._sender: asyncio.Task[None] | None = None
        self._here: list[Callable[[], None]] = []

    def on_ready_here(self, callback: Callable[[], None]) -> None:
        """Tell a worker of this process at once, without the way through PostgreSQL."""
        self._here.append(callback)

    def ring(self, *, ready: bool = False, jobs: Iterable[JobId] = ()) -> None:
        """Say, once the caller has committed, that there is work or news of jobs."""
        self._ready |= ready
        self._jobs.update(jobs)
        if ready:
            for callback in self._here:
                callback()
        if (self._ready or self._jobs) and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send(), name="bell")

    async def _send(self) -> None:
        while self._ready or self._jobs:
            ready, self._ready = self._ready, False
            jobs, self._jobs = sorted(map(str, self._jobs)), set()
            parts = [
                ",".join(jobs[start : start + _JOBS_PER_NOTICE])
                for start in range(0, len(jobs), _JOBS_PER_NOTICE)
            ]
            try:
                await self._notify([(READY, "")] * ready + [(JOB, part) for part in parts])
            except (*LOST, DatabaseUnavailable) as error:
                log.warning("a notice was not sent", error=str(error))
            # The first one goes out at once; what comes right after it is gathered.
            await asyncio.sleep(_GATHER)

    async def _notify(self, notices: Sequence[tuple[str, str]]) -> None:
        names, texts = zip(*notices, strict=True)

        async def notify(conn: Connection) -> None:
            await conn.execute(_NOTIFY, names, texts)

        await self._database.statement(notify)

    async def aclose(self) -> None:
        """Send what was gathered."""
        if self._sender is not None:
            await self._sender


class Ears:
    """Hears notices on one connection, which is replaced when it is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ready: list[Callable[[], None]] = []
        self._jobs: list[Callable[[frozenset[str]], None]] = []
        self._listening = asyncio.Event()

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._ready.append(callback)

    def on_jobs(self, callback: Callable[[frozenset[str]], None]) -> None:
        self._jobs.append(callback)

    async def listening(self) -> None:
        """Wait until notices are heard."""
        await self._listening.wait()

    async def run(self) -> None:
        """Listen for ever."""
        while True:
            try:
                await self._listen()
            except (*LOST, DatabaseUnavailable) as error:
                log.warning("notices are not heard", error=str(error))
            self._listening.clear()
            await asyncio.sleep(0.5)

    async def _listen(self) -> None:
        conn = await self._database.dedicated()
        lost = asyncio.Event()
        try:
            conn.add_termination_listener(lambda _: lost.set())
            await conn.add_listener(READY, lambda *_: self._hear_ready())
            await conn.add_listener(JOB, lambda _c, _p, _n, payload: self._hear_jobs(str(payload)))
            self._listening.set()
            # What was said while nobody listened.
            self._hear_ready()
            await lost.wait()
        finally:
            await conn.close()

    def _hear_ready(self) -> None:
        for callback in self._ready:
            callback()

    def _hear_jobs(self, payload: str) -> None:
        jobs = frozenset(payload.split(","))
        for callback in self._jobs:
            callback(jobs)
