"""`/api/jobs/{id}/events`: what happens to a job, as it happens, over server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from trapline.api.access import Reader
from trapline.api.engine import CurrentEngine, Engine
from trapline.api.log_tail import LogTail, encoded
from trapline.deliver.happening import Happening
from trapline.errors import InvalidInput
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs
from trapline.queue.events import ENDINGS
from trapline.queue.logbook import Level

router = APIRouter(prefix="/api/jobs", tags=["jobs"])

_LONGEST_NUMBER = 16
_BREATH = b": nothing new\n\n"


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(
    job_id: UUID,
    who: Reader,
    parts: CurrentEngine,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only events after this number.")] = 0,
    log: Annotated[
        Level | None, Query(description="Also the lines of its log, of this level and above.")
    ] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Stream a job's events; the stream ends with the job. A client that comes back names the
    last number that it has seen, as browsers do by themselves. Lines of the log are of type `log`
    and have no number: they come before the events that were written with them.
    """
    if last_event_id is not None:
        if (
            not last_event_id.isascii()
            or not last_event_id.isdigit()
            or len(last_event_id) > _LONGEST_NUMBER
        ):
            raise InvalidInput("Last-Event-ID is not the number of an event.")
        after = max(after, int(last_event_id))
    async with parts.results.database.tenant_tx(who.organisation_id) as conn:
        await jobs.get(conn, JobId(job_id))
    return StreamingResponse(
        _stream(parts, who.organisation_id, JobId(job_id), after, log),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(
    parts: Engine, organisation_id: OrganisationId, job_id: JobId, after: int, log: Level | None
) -> AsyncIterator[bytes]:
    tail = None
    if log is not None:
        tail = LogTail(parts.results.database, organisation_id, job_id, log, after)
    async for found in parts.feeds.follow(organisation_id, job_id, after):
        lines = [] if tail is None else await tail.lines()
        said = [b"event: log\ndata: %b\n\n" % encoded(line) for line in lines]
        yield b"".join((*said, *map(_written, found))) or _BREATH
        if found and found[-1].type in ENDINGS:
            return
        if not found and await _is_over(parts, organisation_id, job_id):
            return


async def _is_over(parts: Engine, organisation_id: OrganisationId, job_id: JobId) -> bool:
    """Tell whether a job has ended whose ending the client has already seen."""
    async with parts.results.database.tenant_tx(organisation_id) as conn:
        return (await jobs.get(conn, job_id)).status in jobs.ENDED


def _written(happening: Happening) -> bytes:
    data = {
        "number": happening.number,
        "type": happening.type,
        "at": happening.created_at,
        "task": happening.task_id,
        "data": happening.data,
    }
    encoded = msgspec.json.encode(data)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (
        happening.number,
        happening.type.encode(),
        encoded,
    )
