"""`/api/jobs/{id}/events`: a job's events as server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from trapline.api.dependencies import CurrentServices
from trapline.api.log_tail import LogTail, encoded
from trapline.api.principal import Reader, StreamAccess
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.deliver.event import Event
from trapline.errors import InvalidInput
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs
from trapline.queue.events import TERMINAL_EVENTS
from trapline.queue.job_log import Level

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
    principal: Reader,
    services: CurrentServices,
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
    async with services.results.database.tenant_tx(principal.organisation_id) as conn:
        await jobs.get(conn, JobId(job_id))
    return StreamingResponse(
        _stream(services, principal, JobId(job_id), after, log),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(
    services: Services,
    principal: Principal,
    job_id: JobId,
    after: int,
    log: Level | None,
) -> AsyncIterator[bytes]:
    organisation_id = principal.organisation_id
    access = StreamAccess(services.results.database, principal)
    tail = None
    if log is not None:
        tail = LogTail(services.results.database, organisation_id, job_id, log, after)
    async for events in services.feeds.follow(organisation_id, job_id, after):
        if await access.revoked():
            return
        lines = [] if tail is None else await tail.lines()
        messages = [b"event: log\ndata: %b\n\n" % encoded(line) for line in lines]
        yield b"".join((*messages, *map(_written, events))) or _BREATH
        if events and events[-1].type in TERMINAL_EVENTS:
            return
        if not events and await _is_over(services, organisation_id, job_id):
            return


async def _is_over(services: Services, organisation_id: OrganisationId, job_id: JobId) -> bool:
    """Tell whether a job has ended whose ending the client has already seen."""
    async with services.results.database.tenant_tx(organisation_id) as conn:
        return (await jobs.get(conn, job_id)).status in jobs.ENDED


def _written(event: Event) -> bytes:
    data = {
        "number": event.number,
        "type": event.type,
        "at": event.created_at,
        "task": event.task_id,
        "data": event.data,
    }
    encoded = msgspec.json.encode(data)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (
        event.number,
        event.type.encode(),
        encoded,
    )
