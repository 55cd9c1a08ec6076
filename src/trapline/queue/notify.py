"""NOTIFY after commit, coalesced per process, and LISTEN on a connection of its own.

A notification is a hint: every receiver also polls, so a lost one costs a second, not the work.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import asyncpg

from trapline.db.connection import LOST, Connection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.model import JobId

log = get_logger(__name__)

READY: Final = "trapline_ready"
JOB: Final = "trapline_job"

# Long enough to collect a burst, too short to be noticed.
_COLLECT: Final = 0.002
# A notification promises nothing, so nobody waits until it is on the disk.
_NOTIFY: Final = (
    "SELECT set_config('synchronous_commit', 'off', true), pg_notify(name, text)"
    " FROM unnest($1::text[], $2::text[]) AS n (name, text)"
)
# A payload has at most 8,000 bytes.
_JOBS_PER_NOTIFICATION: Final = 200


class Notifier:
    """Notifies other processes, at most once every few milliseconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ready = False
        self._jobs: set[JobId] = set()
        self._sender: asyncio.Task[None] | None = None
        self._here: list[Callable[[], None]] = []

    def on_ready_here(self, callback: Callable[[], None]) -> None:
        """Call a worker of this process at once, without PostgreSQL."""
        self._here.append(callback)

    def notify(self, *, ready: bool = False, jobs: Iterable[JobId] = ()) -> None:
        """Announce new tasks or events of jobs; the caller has committed them."""
        self._ready |= ready
        self._jobs.update(jobs)
        if ready:
            for callback in self._here:
                callback()
        if (self._ready or self._jobs) and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send(), name="notifier")

    async def _send(self) -> None:
        while self._ready or self._jobs:
            ready, self._ready = self._ready, False
            jobs, self._jobs = sorted(map(str, self._jobs)), set()
            parts = [
                ",".join(jobs[start : start + _JOBS_PER_NOTIFICATION])
                for start in range(0, len(jobs), _JOBS_PER_NOTIFICATION)
            ]
            try:
                await self._send_all([(READY, "")] * ready + [(JOB, part) for part in parts])
            except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                log.warning("a notification was not sent", error=str(error))
            # The first one goes out at once; those right after it are collected.
            await asyncio.sleep(_COLLECT)

    async def _send_all(self, notices: Sequence[tuple[str, str]]) -> None:
        names, texts = zip(*notices, strict=True)

        async def notify(conn: Connection) -> None:
            await conn.execute(_NOTIFY, names, texts)

        await self._database.run_statement(notify)

    async def aclose(self) -> None:
        """Send what was collected."""
        if self._sender is not None:
            await self._sender


class Listener:
    """Receives notifications on one connection, which is replaced when it is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ready: list[Callable[[], None]] = []
        self._jobs: list[Callable[[frozenset[str]], None]] = []

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._ready.append(callback)

    def on_jobs(self, callback: Callable[[frozenset[str]], None]) -> None:
        self._jobs.append(callback)

    async def run(self) -> None:
        """Listen for ever."""
        while True:
            try:
                await self._listen()
            except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                log.warning("notifications are not received", error=str(error))
            await asyncio.sleep(0.5)

    async def _listen(self) -> None:
        conn = await self._database.dedicated("listener")
        lost = asyncio.Event()
        try:
            conn.add_termination_listener(lambda _: lost.set())
            await conn.add_listener(READY, lambda *_: self._on_ready())
            await conn.add_listener(JOB, lambda _c, _p, _n, payload: self._on_jobs(str(payload)))
            # For notifications that were sent while nobody listened.
            self._on_ready()
            await lost.wait()
        finally:
            await conn.close()

    def _on_ready(self) -> None:
        for callback in self._ready:
            callback()

    def _on_jobs(self, payload: str) -> None:
        jobs = frozenset(payload.split(","))
        for callback in self._jobs:
            callback(jobs)
