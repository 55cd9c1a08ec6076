"""Who is told of a job, and which of its events: an endpoint, and a delivery for each event."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from trapline.db.connection import Connection
from trapline.deliver.happening import Happening
from trapline.deliver.sql import webhooks as queries
from trapline.deliver.sql.webhooks import GetDeliveryRow, ListDeliveriesRow
from trapline.errors import InvalidInput, NotFound
from trapline.model import JobId, OrganisationId, new_uuid

# What only watchers of a live stream care for.
UNTOLD: Final = frozenset({"paused", "resumed", "reopened", "data"})
_JOB: Final = "job."


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver as someone asks for it."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    events: Sequence[str] = ()


async def subscribe(
    conn: Connection,
    organisation_id: OrganisationId,
    job_id: JobId,
    topic: str,
    webhook: Webhook,
) -> None:
    """Have a receiver told of a job, from its first event on: call it with the job's submission."""
    await queries.add_endpoint(
        conn,
        id=new_uuid(),
        organisation_id=organisation_id,
        job_id=job_id,
        topic=topic,
        url=webhook.url,
        receiver=_receiver(webhook.url),
        headers=dict(webhook.headers),
        metadata=dict(webhook.metadata),
        events=list(webhook.events),
    )


async def plan(conn: Connection, happenings: Sequence[Happening]) -> int:
    """Write the deliveries that events ask for; return how many."""
    endpoints = await queries.endpoints_of(
        conn, job_ids=list({happening.job_id for happening in happenings})
    )
    if not endpoints:
        return 0
    wanted = [
        (endpoint, happening, name)
        for happening in happenings
        for endpoint in endpoints
        if endpoint.job_id == happening.job_id
        and (name := name_of(endpoint.topic, happening.type)) is not None
        and wants(endpoint.events, name)
    ]
    await queries.add_deliveries(
        conn,
        endpoint_ids=[endpoint.id for endpoint, _, _ in wanted],
        numbers=[happening.number for _, happening, _ in wanted],
        organisation_ids=[happening.organisation_id for _, happening, _ in wanted],
        names=[name for _, _, name in wanted],
        datas=[msgspec.json.encode(happening.data).decode() for _, happening, _ in wanted],
    )
    await queries.wake_endpoints(conn, ids=list({endpoint.id for endpoint, _, _ in wanted}))
    return len(wanted)


def name_of(topic: str, event_type: str) -> str | None:
    """Return what receivers call an event: crawl.page, crawl.completed; None: they are not told."""
    word = event_type.removeprefix(_JOB)
    return None if word in UNTOLD else f"{topic}.{word}"


def wants(filters: Iterable[str], name: str) -> bool:
    """Match a filter by the full name, its second part, or all after the first dot."""
    parts = name.split(".")
    known = {name, parts[1] if len(parts) > 1 else name, name.partition(".")[2]}
    given = set(filters)
    return not given or not known.isdisjoint(given)


async def listing(
    conn: Connection,
    organisation_id: OrganisationId,
    *,
    state: str | None = None,
    job_id: JobId | None = None,
    most: int = 100,
) -> list[ListDeliveriesRow]:
    return await queries.list_deliveries(
        conn, organisation_id=organisation_id, state=state, job_id=job_id, most=most
    )


async def get(
    conn: Connection, organisation_id: OrganisationId, delivery_id: UUID
) -> GetDeliveryRow:
    row = await queries.get_delivery(conn, organisation_id=organisation_id, id=delivery_id)
    if row is None:
        raise NotFound(f"There is no delivery {delivery_id}.")
    return row


async def replay(
    conn: Connection,
    organisation_id: OrganisationId,
    *,
    delivery_id: UUID | None = None,
    job_id: JobId | None = None,
    state: str | None = None,
) -> int:
    """Send again, with the same ids: one delivery, or those of a job or of a state."""
    if delivery_id is None and job_id is None and state is None:
        raise InvalidInput("Say which deliveries: one by its id, or those of a job or of a state.")
    endpoints = await queries.replay_deliveries(
        conn, organisation_id=organisation_id, id=delivery_id, job_id=job_id, state=state
    )
    if delivery_id is not None and not endpoints:
        row = await get(conn, organisation_id, delivery_id)
        raise InvalidInput(f"The delivery is {row.state}: it is going to be sent anyway.")
    await queries.wake_endpoints(conn, ids=sorted(set(endpoints)))
    return len(endpoints)


def _receiver(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput("A webhook needs an http or https URL.")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
