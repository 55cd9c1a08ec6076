"""Progress of a crawl or batch over WebSocket: the documents so far, then each as it comes."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import msgspec
from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from trapline.api.dependencies import services_of
from trapline.api.firecrawl import crawl, job_ids, job_status
from trapline.api.firecrawl.errors import Refusal
from trapline.api.firecrawl.job_status import Cursor
from trapline.api.log_tail import LogTail, encoded
from trapline.api.principal import StreamAccess, find_reader
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.deliver.event import Event
from trapline.errors import Forbidden, TraplineError, Unauthorised
from trapline.model import JobId
from trapline.pipeline.kinds import BATCH, CRAWL
from trapline.pipeline.reports import job_document, job_results
from trapline.queue import jobs
from trapline.queue.events import TERMINAL_EVENTS
from trapline.queue.job_log import Level
from trapline.queue.sql.jobs import JobRow

router = APIRouter(tags=["firecrawl"])
T = TypeVar("T")

_NORMAL: Final = 1000
_POLICY: Final = 1008
_INTERNAL: Final = 1011
_UNAUTHORISED: Final = 3000
_FORBIDDEN: Final = 3003
_LONGEST_REASON: Final = 120
_CACHED_MESSAGES: Final = 2000


@router.websocket("/v2/crawl/{job_id}")
@router.websocket("/v1/crawl/{job_id}")
async def watch_crawl(socket: WebSocket, job_id: str) -> None:
    """Send the documents of a crawl so far, then each new one."""
    await _watch(socket, job_id, CRAWL)


@router.websocket("/v2/batch/scrape/{job_id}")
@router.websocket("/v1/batch/scrape/{job_id}")
async def watch_batch(socket: WebSocket, job_id: str) -> None:
    """Send the documents of a batch so far, then each new one."""
    await _watch(socket, job_id, BATCH)


async def _watch(socket: WebSocket, reference: str, kind: str) -> None:
    # The browser's way to send a key is the subprotocol, which must be named in the answer.
    offered = socket.headers.get("sec-websocket-protocol", "").partition(",")[0].strip()
    await socket.accept(subprotocol=offered or None)
    try:
        principal = await find_reader(socket)
        job_id = job_ids.parse(reference)
        watch = _Watch(socket, services_of(socket), principal, job_id, kind, _level(socket))
        await watch.run()
    except WebSocketDisconnect:
        return
    except TraplineError as error:
        await _close(socket, _code(error), error.message)


def _level(socket: WebSocket) -> Level | None:
    """Return from which level on the log is wanted, too: `?log=INFO`. Clients of Firecrawl's own do
    not know such messages, so they are sent to nobody else.
    """
    level = socket.query_params.get("log")
    try:
        return None if level is None else Level(level)
    except ValueError:
        raise Refusal(400, "Invalid log level") from None


def _code(error: TraplineError) -> int:
    if isinstance(error, Unauthorised):
        return _UNAUTHORISED
    if isinstance(error, Forbidden):
        return _FORBIDDEN
    return _POLICY if isinstance(error, Refusal) else _INTERNAL


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    message = {"type": "done"} if code == _NORMAL else {"type": "error", "error": reason}
    text = msgspec.json.encode(message).decode()
    await socket.close(code, text if len(text.encode()) <= _LONGEST_REASON else "")


@dataclass(slots=True)
class _Watch:
    """One watcher of one job."""

    socket: WebSocket
    services: Services
    principal: Principal
    job_id: JobId
    kind: str
    log: Level | None = None

    async def run(self) -> None:
        job = await self._job()
        last = await self._catch_up(job)
        receiver = asyncio.create_task(self._until_closed())
        sender = asyncio.create_task(self._send_events(job, last))
        done, pending = await asyncio.wait({receiver, sender}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _job(self) -> JobRow:
        async with self.services.results.database.tenant_tx(self.principal.organisation_id) as conn:
            return await crawl.find_job(conn, self.job_id, self.kind)

    async def _catch_up(self, job: JobRow) -> int:
        """Send the status with its first documents; return the event after which the rest comes."""
        url = f"{job_status.base(self.socket)}/v2/{crawl.PATHS[self.kind]}/{self.job_id}"
        # Those that come at the same moment share it; it may be large, so it is not kept.
        key = (job.id, job.last_event, url)
        message, last = await CATCH_UPS.get(key, lambda: _catch_up_message(self.services, job, url))
        await self._send(message)
        return last

    async def _send_events(self, job: JobRow, last: int) -> None:
        database = self.services.results.database
        access = StreamAccess(database, self.principal)
        tail = None
        if self.log is not None:
            tail = LogTail(database, self.principal.organisation_id, self.job_id, self.log)
        async for events in self.services.feeds.follow(
            self.principal.organisation_id, self.job_id, last
        ):
            await access.require()
            for line in [] if tail is None else await tail.lines():
                await self._send(b'{"type":"log","data":%b}' % encoded(line))
            for event in events:
                if event.type == "page" and event.data.get("error") is None:
                    await self._send_cached(job, event, _document_message)
            if events and events[-1].type in TERMINAL_EVENTS:
                if events[-1].type != "job.cancelled":
                    await self._send(
                        await DONE.get(job.id, lambda: _done_message(self.services, job))
                    )
                await _close(self.socket, _NORMAL, "done")
                return

    async def _send_cached(self, job: JobRow, event: Event, make: "MessageMaker") -> None:
        key = (job.id, event.number)
        message = await MESSAGES.get(key, lambda: make(self.services, job, event.number))
        if message is not None:
            await self._send(message)

    async def _send(self, message: bytes) -> None:
        await self.socket.send_text(message.decode())

    async def _until_closed(self) -> None:
        """Notice when the client goes; what it says is not listened to."""
        while (await self.socket.receive())["type"] != "websocket.disconnect":
            continue


MessageMaker = Callable[[Services, JobRow, int], Coroutine[Any, Any, bytes | None]]
"""Makes the message that tells of an event of a job, by its number."""


@dataclass(slots=True)
class Shared(Generic[T]):
    """A cache of results that concurrent callers share: a thousand watchers cost as much as one.

    It keeps the last `kept` results; with 0, only callers that wait at the same time share one.
    """

    kept: int
    _tasks: OrderedDict[Hashable, asyncio.Task[T]] = field(default_factory=OrderedDict)

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = self._tasks.get(key)
        if task is None or (task.done() and task.exception() is not None):
            task = self._tasks[key] = asyncio.create_task(make())
            if not self.kept:
                task.add_done_callback(lambda _: self._tasks.pop(key, None))
            elif len(self._tasks) > self.kept:
                self._tasks.popitem(last=False)
        # A watcher that leaves must not take it from the others.
        return await asyncio.shield(task)


MESSAGES: Final = Shared[bytes | None](_CACHED_MESSAGES)
CATCH_UPS: Final = Shared[tuple[bytes, int]](0)
DONE: Final = Shared[bytes](0)


async def _catch_up_message(services: Services, job: JobRow, url: str) -> tuple[bytes, int]:
    """Make the status of a job with its first documents; return the last event in it too."""
    async with services.results.database.tenant_tx(job.organisation_id) as conn:
        counts = await job_results.count_pages(conn, job.id)
    body, last = await job_status.page(services.results, job, counts, Cursor(), url)
    return b'{"type":"catchup","data":%b}' % body, last


async def _document_message(services: Services, job: JobRow, number: int) -> bytes | None:
    async with services.results.database.tenant_tx(job.organisation_id) as conn:
        result = await services.results.page(conn, job, number)
    if result is None:
        return None
    return b'{"type":"document","data":%b}' % job_document.encode(result, job)


async def _done_message(services: Services, job: JobRow) -> bytes:
    """Make the status of a job that has ended, with its first documents: clients read them there."""
    async with services.results.database.tenant_tx(job.organisation_id) as conn:
        ended = await jobs.get(conn, job.id)
        counts = await job_results.count_pages(conn, job.id)
    body, _ = await job_status.page(services.results, ended, counts, Cursor(), None)
    return b'{"type":"done","data":%b}' % body
