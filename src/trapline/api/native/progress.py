"""`/api/knowledge-source/{id}/events`: how a source or an application gets on, as it happens.

The same over server-sent events and over WebSocket: `progress` whenever the counts changed, and for a
source `item` for every file or page that has ended, with the user who asked for it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

from trapline.api import access
from trapline.api.access import Reader
from trapline.api.engine import CurrentEngine, Engine, engine
from trapline.db.tenancy import Principal
from trapline.errors import Forbidden, NotFound, TraplineError, Unauthorised
from trapline.model import JobId, SourceId
from trapline.pipeline import ingestion
from trapline.pipeline.ingestion import Progress
from trapline.pipeline.sql import ingestion as reads
from trapline.queue import jobs
from trapline.queue.events import ENDINGS

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

    parts: Engine
    who: Principal
    scope: UUID
    seen: Progress | None = None

    async def job(self) -> JobId | None:
        """Return the job that fills a source; an application has many."""
        async with self.parts.results.database.tenant_tx(self.who.organisation_id) as conn:
            self.seen = None
            await self._look(conn)
            self.seen = None
            row = await reads.shown_source(conn, source_id=SourceId(self.scope))
        return None if row is None or row.job_id is None else JobId(row.job_id)

    async def messages(self, job_id: JobId | None) -> AsyncIterator[list[Message]]:
        """Give what is to be said, an empty list now and then while there is nothing."""
        source = self._of_job(job_id) if job_id is not None else self._of_application()
        async for found in source:
            yield found

    async def _of_job(self, job_id: JobId) -> AsyncIterator[list[Message]]:
        async for found in self.parts.feeds.follow(self.who.organisation_id, job_id):
            said: list[Message] = [
                ("item", one.data)
                for one in found
                if one.type == "item" and one.data.get("source_id") == str(self.scope)
            ]
            yield [*said, *await self.news()]
            if found and found[-1].type in ENDINGS:
                return
            if not found and await self._is_over(job_id):
                return

    async def _of_application(self) -> AsyncIterator[list[Message]]:
        polls = 0
        while True:
            said = await self.news()
            polls = 0 if said else polls + 1
            if said or polls % _POLLS_A_BREATH == 0:
                yield said
            await asyncio.sleep(_POLL)

    async def news(self) -> list[Message]:
        """Return the counts if they changed."""
        async with self.parts.results.database.tenant_tx(self.who.organisation_id) as conn:
            return await self._look(conn)

    async def _look(self, conn: Any) -> list[Message]:
        try:
            now = datetime.now(UTC)
            found = await ingestion.progress(conn, self.who.organisation_id, self.scope, now=now)
        except NotFound:
            if self.seen is None:
                raise
            return []  # It was deleted under its watchers.
        if found == self.seen:
            return []
        self.seen = found
        return [("progress", asdict(found))]

    async def _is_over(self, job_id: JobId) -> bool:
        async with self.parts.results.database.tenant_tx(self.who.organisation_id) as conn:
            try:
                return (await jobs.get(conn, job_id)).status in jobs.ENDED
            except NotFound:
                return True


@router.get(
    "/{scope}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def stream_progress(scope: UUID, who: Reader, parts: CurrentEngine) -> StreamingResponse:
    """Stream how a source or an application gets on; a source's stream ends with its job."""
    watch = _Watch(parts, who, scope)
    job_id = await watch.job()

    async def written() -> AsyncIterator[bytes]:
        async for messages in watch.messages(job_id):
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
        who = await access.principal(socket)
        if "read" not in who.scopes:
            raise Forbidden("This API key lacks the scope 'read'.")
        watch = _Watch(engine(socket), who, _uuid(scope))
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
