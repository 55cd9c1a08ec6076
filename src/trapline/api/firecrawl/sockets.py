"""Watching a crawl or a batch over WebSocket: what is there so far, then each page as it comes."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import msgspec
from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from trapline.api import access
from trapline.api.engine import Engine, engine
from trapline.api.firecrawl import crawl, identity, statuses
from trapline.api.firecrawl.refusals import Refusal
from trapline.api.firecrawl.statuses import Cursor
from trapline.api.log_tail import LogTail, encoded
from trapline.db.tenancy import Principal
from trapline.deliver.happening import Happening
from trapline.errors import Forbidden, TraplineError, Unauthorised
from trapline.model import JobId
from trapline.pipeline import results
from trapline.pipeline.kinds import BATCH, CRAWL
from trapline.queue import jobs
from trapline.queue.events import ENDINGS
from trapline.queue.logbook import Level
from trapline.queue.sql.jobs import JobRow

router = APIRouter(tags=["firecrawl"])
T = TypeVar("T")

_NORMAL: Final = 1000
_POLICY: Final = 1008
_INTERNAL: Final = 1011
_UNAUTHORISED: Final = 3000
_FORBIDDEN: Final = 3003
_LONGEST_REASON: Final = 120
_REMEMBERED: Final = 2000


@router.websocket("/v2/crawl/{job_id}")
@router.websocket("/v1/crawl/{job_id}")
async def watch_crawl(socket: WebSocket, job_id: str) -> None:
    """Send what a crawl has found so far, then each page as it is found."""
    await _watch(socket, job_id, CRAWL)


@router.websocket("/v2/batch/scrape/{job_id}")
@router.websocket("/v1/batch/scrape/{job_id}")
async def watch_batch(socket: WebSocket, job_id: str) -> None:
    """Send what a batch has found so far, then each page as it is found."""
    await _watch(socket, job_id, BATCH)


async def _watch(socket: WebSocket, reference: str, kind: str) -> None:
    # The browser's way to send a key is the subprotocol, which must be named in the answer.
    offered = socket.headers.get("sec-websocket-protocol", "").partition(",")[0].strip()
    await socket.accept(subprotocol=offered or None)
    try:
        who = await access.principal(socket)
        job_id = identity.parse(reference)
        watch = _Watch(socket, engine(socket), who, job_id, kind, _level(socket))
        await watch.run()
    except WebSocketDisconnect:
        return
    except TraplineError as error:
        await _close(socket, _code(error), error.message)


def _level(socket: WebSocket) -> Level | None:
    """Return from which level on the log is wanted, too: `?log=INFO`. Clients of Firecrawl's own do
    not know such messages, so they are sent to nobody else.
    """
    wanted = socket.query_params.get("log")
    try:
        return None if wanted is None else Level(wanted)
    except ValueError:
        raise Refusal(400, "Invalid log level") from None


def _code(error: TraplineError) -> int:
    if isinstance(error, Unauthorised):
        return _UNAUTHORISED
    if isinstance(error, Forbidden):
        return _FORBIDDEN
    return _POLICY if isinstance(error, Refusal) else _INTERNAL


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    said = {"type": "done"} if code == _NORMAL else {"type": "error", "error": reason}
    text = msgspec.json.encode(said).decode()
    await socket.close(code, text if len(text.encode()) <= _LONGEST_REASON else "")


@dataclass(slots=True)
class _Watch:
    """One watcher of one job."""

    socket: WebSocket
    parts: Engine
    who: Principal
    job_id: JobId
    kind: str
    log: Level | None = None

    async def run(self) -> None:
        job = await self._job()
        last = await self._catch_up(job)
        listening = asyncio.create_task(self._until_closed())
        telling = asyncio.create_task(self._tell(job, last))
        done, pending = await asyncio.wait(
            {listening, telling}, return_when=asyncio.FIRST_COMPLETED
        )
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _job(self) -> JobRow:
        async with self.parts.results.database.tenant_tx(self.who.organisation_id) as conn:
            return await crawl.found(conn, self.job_id, self.kind)

    async def _catch_up(self, job: JobRow) -> int:
        """Send the status with its first documents; return the event after which the rest comes."""
        url = f"{statuses.base(self.socket)}/v2/{crawl.Path[self.kind]}/{self.job_id}"
        # Those that come at the same moment share it; it may be large, so it is not kept.
        key = (job.id, job.last_event, url)
        message, last = await BEGINNINGS.made(key, lambda: _beginning(self.parts, job, url))
        await self._send(message)
        return last

    async def _tell(self, job: JobRow, last: int) -> None:
        tail = None
        if self.log is not None:
            database = self.parts.results.database
            tail = LogTail(database, self.who.organisation_id, self.job_id, self.log)
        async for found in self.parts.feeds.follow(self.who.organisation_id, self.job_id, last):
            for line in [] if tail is None else await tail.lines():
                await self._send(b'{"type":"log","data":%b}' % encoded(line))
            for happening in found:
                if happening.type == "page" and happening.data.get("error") is None:
                    await self._send_made(job, happening, _page)
            if found and found[-1].type in ENDINGS:
                if found[-1].type != "job.cancelled":
                    await self._send_made(job, found[-1], _ending)
                await _close(self.socket, _NORMAL, "done")
                return

    async def _send_made(self, job: JobRow, happening: Happening, make: "Make") -> None:
        key = (job.id, happening.number)
        message = await MESSAGES.made(key, lambda: make(self.parts, job, happening.number))
        if message is not None:
            await self._send(message)

    async def _send(self, message: bytes) -> None:
        await self.socket.send_text(message.decode())

    async def _until_closed(self) -> None:
        """Notice when the client goes; what it says is not listened to."""
        while (await self.socket.receive())["type"] != "websocket.disconnect":
            continue


Make = Callable[[Engine, JobRow, int], Coroutine[Any, Any, bytes | None]]
"""Makes the message that tells of an event of a job, by its number."""


@dataclass(slots=True)
class Shared(Generic[T]):
    """What is made once for all who want it: a thousand watchers of a job share the work of one.

    So many of the last ones are kept; with 0, what is made is given to those who wait for it.
    """

    kept: int
    _made: OrderedDict[Hashable, asyncio.Task[T]] = field(default_factory=OrderedDict)

    async def made(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        making = self._made.get(key)
        if making is None or (making.done() and making.exception() is not None):
            making = self._made[key] = asyncio.create_task(make())
            if not self.kept:
                making.add_done_callback(lambda _: self._made.pop(key, None))
            elif len(self._made) > self.kept:
                self._made.popitem(last=False)
        # A watcher that leaves must not take it from the others.
        return await asyncio.shield(making)


MESSAGES: Final = Shared[bytes | None](_REMEMBERED)
BEGINNINGS: Final = Shared[tuple[bytes, int]](0)


async def _beginning(parts: Engine, job: JobRow, url: str) -> tuple[bytes, int]:
    """Make the status of a job with its first documents; and the event after which the rest comes."""
    async with parts.results.database.tenant_tx(job.organisation_id) as conn:
        counts = await results.counts(conn, job.id)
    body, last = await statuses.page(parts.results, job, counts, Cursor(), url)
    return b'{"type":"catchup","data":%b}' % body, last


async def _page(parts: Engine, job: JobRow, number: int) -> bytes | None:
    async with parts.results.database.tenant_tx(job.organisation_id) as conn:
        result = await parts.results.page(conn, job, number)
    if result is None:
        return None
    return b'{"type":"document","data":%b}' % statuses.encode(result, job)


async def _ending(parts: Engine, job: JobRow, number: int) -> bytes | None:
    """Make the status of a job that has ended."""
    del number
    async with parts.results.database.tenant_tx(job.organisation_id) as conn:
        ended = await jobs.get(conn, job.id)
        counts = await results.counts(conn, job.id)
    return b'{"type":"done","data":%b}' % msgspec.json.encode(statuses.head(ended, counts))
