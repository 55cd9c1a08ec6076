"""Webhook subscriptions: an endpoint for a job, and a delivery for each of its events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from trapline.db.connection import Connection
from trapline.deliver.event import Event
from trapline.deliver.sql import webhooks as queries
from trapline.deliver.sql.webhooks import GetDeliveryRow, ListDeliveriesRow
from trapline.errors import InvalidInput, NotFound
from trapline.model import JobId, OrganisationId, new_uuid

# Events for live streams only.
STREAM_ONLY: Final = frozenset({"paused", "resumed", "reopened", "data"})
_JOB: Final = "job."


@dataclass(frozen=True, slots=True)
class Webhook:
    """A requested webhook."""

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
    """Add an endpoint to a job; call it in the transaction that submits the job."""
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


async def add_deliveries(conn: Connection, events: Sequence[Event]) -> int:
    """Add a delivery for each event and endpoint that wants it; return how many."""
    endpoints = await queries.endpoints_of(conn, job_ids=list({event.job_id for event in events}))
    if not endpoints:
        return 0
    deliveries = [
        (endpoint, event, name)
        for event in events
        for endpoint in endpoints
        if endpoint.job_id == event.job_id
        and (name := event_name(endpoint.topic, event.type)) is not None
        and matches_filters(endpoint.events, name)
    ]
    await queries.add_deliveries(
        conn,
        endpoint_ids=[endpoint.id for endpoint, _, _ in deliveries],
        numbers=[event.number for _, event, _ in deliveries],
        organisation_ids=[event.organisation_id for _, event, _ in deliveries],
        names=[name for _, _, name in deliveries],
        datas=[msgspec.json.encode(event.data).decode() for _, event, _ in deliveries],
    )
    await queries.wake_endpoints(conn, ids=list({endpoint.id for endpoint, _, _ in deliveries}))
    return len(deliveries)


def event_name(topic: str, event_type: str) -> str | None:
    """Return the webhook name of an event, such as crawl.page; None if no webhook gets it."""
    word = event_type.removeprefix(_JOB)
    return None if word in STREAM_ONLY else f"{topic}.{word}"


def matches_filters(filters: Iterable[str], name: str) -> bool:
    """Match the full name, its second part, or all after the first dot; no filter matches all."""
    parts = name.split(".")
    names = {name, parts[1] if len(parts) > 1 else name, name.partition(".")[2]}
    filters = set(filters)
    return not filters or not names.isdisjoint(filters)


async def list_deliveries(
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
    """Send deliveries again with the same ids: one, or those of a job or of a state."""
    if delivery_id is None and job_id is None and state is None:
        raise InvalidInput("Name the deliveries: one by its id, or those of a job or of a state.")
    endpoints = await queries.replay_deliveries(
        conn, organisation_id=organisation_id, id=delivery_id, job_id=job_id, state=state
    )
    if delivery_id is not None and not endpoints:
        row = await get(conn, organisation_id, delivery_id)
        raise InvalidInput(f"The delivery is {row.state}: it will be sent without a replay.")
    await queries.wake_endpoints(conn, ids=sorted(set(endpoints)))
    return len(endpoints)


def _receiver(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput("A webhook needs an http or https URL.")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
