"""`/api/knowledge-source/{id}/events`: how a source or an application gets on, as it happens.

The same over server-sent events and over WebSocket: `progress` whenever the counts changed, and for a
source `item` for every file or page that has ended, with the user who asked for it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

from trapline.api.dependencies import CurrentServices, services_of
from trapline.api.principal import Reader, StreamAccess, find_reader
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.errors import Forbidden, NotFound, TraplineError, Unauthorised
from trapline.model import JobId, SourceId
from trapline.pipeline.ingest import source_operations
from trapline.pipeline.ingest.source_operations import Progress
from trapline.pipeline.sql import sources as reads
from trapline.queue import jobs
from trapline.queue.events import TERMINAL_EVENTS

router = APIRouter(prefix="/api/knowledge-source", tags=["knowledge"])

_POLL: Final = 0.5
_POLLS_A_BREATH: Final = 30
_UNAUTHORISED: Final = 3000
_FORBIDDEN: Final = 3003
_REFUSED: Final = 1008
Message = tuple[str, Any]


@dataclass(slots=True)
class _Watch:
    """One watcher of one source or application."""

    services: Services
    principal: Principal
    scope: UUID
    seen: Progress | None = None
    access: StreamAccess = field(init=False)

    def __post_init__(self) -> None:
        self.access = StreamAccess(self.services.results.database, self.principal)

    async def job(self) -> JobId | None:
        """Return the job that fills a source; an application has many."""
        async with self.services.results.database.tenant_tx(self.principal.organisation_id) as conn:
            self.seen = None
            await self._look(conn)
            self.seen = None
            row = await reads.get_source(conn, source_id=SourceId(self.scope))
        return None if row is None or row.job_id is None else JobId(row.job_id)

    async def messages(self, job_id: JobId | None) -> AsyncIterator[list[Message]]:
        """Give what is to be said, an empty list now and then while there is nothing."""
        source = self._of_job(job_id) if job_id is not None else self._of_application()
        async for batch in source:
            yield batch

    async def _of_job(self, job_id: JobId) -> AsyncIterator[list[Message]]:
        async for events in self.services.feeds.follow(self.principal.organisation_id, job_id):
            messages: list[Message] = [
                ("item", one.data)
                for one in events
                if one.type == "item" and one.data.get("source_id") == str(self.scope)
            ]
            yield [*messages, *await self.news()]
            if events and events[-1].type in TERMINAL_EVENTS:
                return
            if not events and await self._is_over(job_id):
                return

    async def _of_application(self) -> AsyncIterator[list[Message]]:
        polls = 0
        while True:
            messages = await self.news()
            polls = 0 if messages else polls + 1
            if messages or polls % _POLLS_A_BREATH == 0:
                yield messages
            await asyncio.sleep(_POLL)

    async def news(self) -> list[Message]:
        """Return the counts if they changed."""
        async with self.services.results.database.tenant_tx(self.principal.organisation_id) as conn:
            return await self._look(conn)

    async def _look(self, conn: Any) -> list[Message]:
        try:
            now = datetime.now(UTC)
            progress = await source_operations.progress(
                conn, self.principal.organisation_id, self.scope, now=now
            )
        except NotFound:
            if self.seen is None:
                raise
            return []  # It was deleted under its watchers.
        if progress == self.seen:
            return []
        self.seen = progress
        return [("progress", asdict(progress))]

    async def _is_over(self, job_id: JobId) -> bool:
        async with self.services.results.database.tenant_tx(self.principal.organisation_id) as conn:
            try:
                return (await jobs.get(conn, job_id)).status in jobs.ENDED
            except NotFound:
                return True


@router.get(
    "/{scope}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def stream_progress(
    scope: UUID, principal: Reader, services: CurrentServices
) -> StreamingResponse:
    """Stream how a source or an application gets on; a source's stream ends with its job."""
    watch = _Watch(services, principal, scope)
    job_id = await watch.job()

    async def written() -> AsyncIterator[bytes]:
        async for messages in watch.messages(job_id):
            if await watch.access.revoked():
                return
            yield b"".join(map(_sent_event, messages)) or b": nothing new\n\n"

    return StreamingResponse(
        written(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.websocket("/{scope}/events")
async def watch_progress(socket: WebSocket, scope: str) -> None:
    """Send the same as JSON messages: `{"type": "progress" | "item", "data": …}`."""
    offered = socket.headers.get("sec-websocket-protocol", "").partition(",")[0].strip()
    await socket.accept(subprotocol=offered or None)
    try:
        principal = await find_reader(socket)
        watch = _Watch(services_of(socket), principal, _uuid(scope))
        await _tell(socket, watch, await watch.job())
        await socket.close()
    except WebSocketDisconnect:
        return
    except TraplineError as error:
        await socket.close(_code(error), error.message[:120])


async def _tell(socket: WebSocket, watch: _Watch, job_id: JobId | None) -> None:
    listening = asyncio.create_task(_until_closed(socket), name="socket")
    telling = asyncio.create_task(_send(socket, watch, job_id), name="telling")
    done, pending = await asyncio.wait({listening, telling}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()


async def _send(socket: WebSocket, watch: _Watch, job_id: JobId | None) -> None:
    async for messages in watch.messages(job_id):
        await watch.access.require()
        for name, data in messages:
            await socket.send_text(msgspec.json.encode({"type": name, "data": data}).decode())


async def _until_closed(socket: WebSocket) -> None:
    while True:
        await socket.receive_text()


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no knowledge source or application {text[:50]!r}.") from None


def _code(error: TraplineError) -> int:
    if isinstance(error, Unauthorised):
        return _UNAUTHORISED
    return _FORBIDDEN if isinstance(error, Forbidden) else _REFUSED


def _sent_event(message: Message) -> bytes:
    name, data = message
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))
