"""Typed functions of webhooks.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId


class EndpointsOfRow(Struct, frozen=True, gc=False):
    id: UUID
    organisation_id: OrganisationId
    job_id: JobId
    topic: str
    events: list[str]


class LeaseEndpointsRow(Struct, frozen=True, gc=False):
    id: UUID
    organisation_id: OrganisationId
    job_id: JobId
    topic: str
    url: str
    receiver: str
    headers: Any
    metadata: Any


class NextDeliveriesRow(Struct, frozen=True, gc=False):
    endpoint_id: UUID
    number: int
    id: UUID
    organisation_id: OrganisationId
    name: str
    data: Any
    state: str
    attempts: int
    created_at: datetime
    due_at: datetime
    first_attempt_at: datetime | None
    last_attempt_at: datetime | None
    delivered_at: datetime | None
    answer: int | None
    error: str | None
    took_ms: int | None


class ListDeliveriesRow(Struct, frozen=True, gc=False):
    id: UUID
    name: str
    job_id: JobId
    number: int
    url: str
    state: str
    attempts: int
    answer: int | None
    error: str | None
    created_at: datetime
    due_at: datetime
    last_attempt_at: datetime | None
    delivered_at: datetime | None


class GetDeliveryRow(Struct, frozen=True, gc=False):
    endpoint_id: UUID
    number: int
    id: UUID
    organisation_id: OrganisationId
    name: str
    data: Any
    state: str
    attempts: int
    created_at: datetime
    due_at: datetime
    first_attempt_at: datetime | None
    last_attempt_at: datetime | None
    delivered_at: datetime | None
    answer: int | None
    error: str | None
    took_ms: int | None
    job_id: JobId
    topic: str
    url: str
    receiver: str
    headers: Any
    metadata: Any


class DeliveriesNewestRow(Struct, frozen=True, gc=False):
    id: UUID
    name: str
    job_id: JobId
    number: int
    url: str
    state: str
    attempts: int
    answer: int | None
    error: str | None
    created_at: datetime
    due_at: datetime
    last_attempt_at: datetime | None
    delivered_at: datetime | None


_ADD_ENDPOINT: Final = """
-- name: AddEndpoint
INSERT INTO deliver.endpoint (
    id, organisation_id, job_id, topic, url, receiver, headers, metadata, events
) VALUES (
    $1, $2, $3, $4, $5,
    $6, $7, $8, $9
)
"""


async def add_endpoint(
    conn: Connection,
    *,
    id: UUID,
    organisation_id: OrganisationId,
    job_id: JobId,
    topic: str,
    url: str,
    receiver: str,
    headers: Any,
    metadata: Any,
    events: Sequence[str],
) -> None:
    """Add a webhook endpoint to a job."""
    await conn.execute(
        _ADD_ENDPOINT, id, organisation_id, job_id, topic, url, receiver, headers, metadata, events
    )


_ENDPOINTS_OF: Final = """
-- name: EndpointsOf
SELECT id, organisation_id, job_id, topic, events FROM deliver.endpoint
WHERE job_id = ANY ($1::uuid[])
"""


async def endpoints_of(conn: Connection, *, job_ids: Sequence[JobId]) -> list[EndpointsOfRow]:
    """The endpoints of jobs, with their event filters."""
    return [EndpointsOfRow(*row) for row in await conn.fetch(_ENDPOINTS_OF, job_ids)]


_ADD_DELIVERIES: Final = """
-- name: AddDeliveries
INSERT INTO deliver.delivery (endpoint_id, number, organisation_id, name, data)
SELECT endpoint_id, number, organisation_id, name, data::jsonb
FROM unnest(
    $1::uuid[],
    $2::bigint[],
    $3::uuid[],
    $4::text[],
    $5::text[]
) AS new (endpoint_id, number, organisation_id, name, data)
ORDER BY endpoint_id, number
ON CONFLICT DO NOTHING
"""


async def add_deliveries(
    conn: Connection,
    *,
    endpoint_ids: Sequence[UUID],
    numbers: Sequence[int],
    organisation_ids: Sequence[OrganisationId],
    names: Sequence[str],
    datas: Sequence[str],
) -> None:
    """Add deliveries; an existing one stays as it is."""
    await conn.execute(_ADD_DELIVERIES, endpoint_ids, numbers, organisation_ids, names, datas)


_WAKE_ENDPOINTS: Final = """
-- name: WakeEndpoints
UPDATE deliver.endpoint e SET due_at = least(e.due_at, now())
WHERE e.id IN (
    SELECT i.id FROM deliver.endpoint i
    WHERE i.id = ANY ($1::uuid[])
    ORDER BY i.id FOR NO KEY UPDATE
)
"""


async def wake_endpoints(conn: Connection, *, ids: Sequence[UUID]) -> None:
    """Make endpoints due now. All are locked, in id order to avoid deadlocks, also those already due: a process that releases one meanwhile must see the new deliveries, or wait."""
    await conn.execute(_WAKE_ENDPOINTS, ids)


_LEASE_ENDPOINTS: Final = """
-- name: LeaseEndpoints
UPDATE deliver.endpoint e
SET lease = $1, leased_until = now() + $2::interval
WHERE e.id IN (
    SELECT i.id FROM deliver.endpoint i
    WHERE i.due_at <= now() AND i.leased_until < now() AND i.id IN (
        SELECT w.id FROM (
            SELECT d.id, d.receiver, row_number() OVER (PARTITION BY d.receiver ORDER BY d.due_at) AS turn
            FROM deliver.endpoint d WHERE d.due_at <= now() AND d.leased_until < now()
        ) w
        LEFT JOIN unnest($3::text[], $4::integer[])
            AS b (receiver, number) ON b.receiver = w.receiver
        WHERE w.turn + coalesce(b.number, 0) <= $5::integer
    )
    ORDER BY i.due_at LIMIT $6::integer
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING e.id, e.organisation_id, e.job_id, e.topic, e.url, e.receiver, e.headers, e.metadata
"""


async def lease_endpoints(
    conn: Connection,
    *,
    lease: UUID,
    lease_time: timedelta,
    receivers: Sequence[str],
    in_hand: Sequence[int],
    most_each: int,
    most: int,
) -> list[LeaseEndpointsRow]:
    """Lease due endpoints, up to a maximum for each receiver, including those already leased."""
    return [
        LeaseEndpointsRow(*row)
        for row in await conn.fetch(
            _LEASE_ENDPOINTS, lease, lease_time, receivers, in_hand, most_each, most
        )
    ]


_NEXT_DELIVERIES: Final = """
-- name: NextDeliveries
(
    SELECT d.* FROM deliver.delivery d
    WHERE d.endpoint_id = $1 AND d.state = 'aside' AND d.due_at <= now()
    ORDER BY d.number LIMIT $2::integer
)
UNION ALL
(
    SELECT d.* FROM deliver.delivery d
    WHERE d.endpoint_id = $1 AND d.state = 'pending'
    ORDER BY d.number LIMIT $2::integer
)
"""


async def next_deliveries(
    conn: Connection, *, endpoint_id: UUID, most: int
) -> list[NextDeliveriesRow]:
    """The deliveries of an endpoint: those set aside that are due, then the pending ones in order."""
    return [
        NextDeliveriesRow(*row) for row in await conn.fetch(_NEXT_DELIVERIES, endpoint_id, most)
    ]


_RENEW_LEASE: Final = """
-- name: RenewLease
UPDATE deliver.endpoint SET leased_until = now() + $1::interval
WHERE id = $2 AND lease = $3 RETURNING id
"""


async def renew_lease(
    conn: Connection, *, lease_time: timedelta, id: UUID, lease: UUID
) -> UUID | None:
    """Lock a leased endpoint and extend its lease; no row if another process has it."""
    value: UUID | None = await conn.fetchval(_RENEW_LEASE, lease_time, id, lease)
    return value


_RECORD_ATTEMPT: Final = """
-- name: RecordAttempt
UPDATE deliver.delivery
SET state = $1, attempts = attempts + 1, due_at = $2,
    first_attempt_at = coalesce(first_attempt_at, $3),
    last_attempt_at = $3,
    delivered_at = CASE WHEN $1::text = 'delivered' THEN now() END,
    answer = $4, error = $5, took_ms = $6
WHERE endpoint_id = $7 AND number = $8
"""


async def record_attempt(
    conn: Connection,
    *,
    state: str,
    due_at: datetime,
    attempted_at: datetime,
    answer: int | None,
    error: str | None,
    took_ms: int,
    endpoint_id: UUID,
    number: int,
) -> None:
    """Record the result of an attempt."""
    await conn.execute(
        _RECORD_ATTEMPT, state, due_at, attempted_at, answer, error, took_ms, endpoint_id, number
    )


_RELEASE_ENDPOINT: Final = """
-- name: ReleaseEndpoint
UPDATE deliver.endpoint e
SET leased_until = 'epoch', lease = NULL, due_at = least(
    (SELECT d.due_at FROM deliver.delivery d
     WHERE d.endpoint_id = e.id AND d.state = 'pending' ORDER BY d.number LIMIT 1),
    (SELECT min(d.due_at) FROM deliver.delivery d WHERE d.endpoint_id = e.id AND d.state = 'aside'))
WHERE e.id = $1
"""


async def release_endpoint(conn: Connection, *, id: UUID) -> None:
    """Release an endpoint, due when its next delivery is. The caller has locked its row."""
    await conn.execute(_RELEASE_ENDPOINT, id)


_LIST_DELIVERIES: Final = """
-- name: ListDeliveries
SELECT
    d.id, d.name, e.job_id, d.number, e.url, d.state, d.attempts, d.answer, d.error,
    d.created_at, d.due_at, d.last_attempt_at, d.delivered_at
FROM deliver.delivery d JOIN deliver.endpoint e ON e.id = d.endpoint_id
WHERE d.organisation_id = $1
    AND ($2::text IS NULL OR d.state = $2)
    AND ($3::uuid IS NULL OR e.job_id = $3)
ORDER BY d.created_at DESC, d.number DESC LIMIT $4::integer
"""


async def list_deliveries(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    state: str | None,
    job_id: JobId | None,
    most: int,
) -> list[ListDeliveriesRow]:
    """Deliveries of an organisation, newest first."""
    return [
        ListDeliveriesRow(*row)
        for row in await conn.fetch(_LIST_DELIVERIES, organisation_id, state, job_id, most)
    ]


_GET_DELIVERY: Final = """
-- name: GetDelivery
SELECT
    d.*, e.job_id, e.topic, e.url, e.receiver, e.headers, e.metadata
FROM deliver.delivery d JOIN deliver.endpoint e ON e.id = d.endpoint_id
WHERE d.organisation_id = $1 AND d.id = $2
"""


async def get_delivery(
    conn: Connection, *, organisation_id: OrganisationId, id: UUID
) -> GetDeliveryRow | None:
    """One delivery with its endpoint."""
    row = await conn.fetchrow(_GET_DELIVERY, organisation_id, id)
    return None if row is None else GetDeliveryRow(*row)


_REPLAY_DELIVERIES: Final = """
-- name: ReplayDeliveries
UPDATE deliver.delivery d
SET state = 'pending', attempts = 0, due_at = now(), first_attempt_at = NULL, delivered_at = NULL,
    created_at = now()
FROM deliver.endpoint e
WHERE e.id = d.endpoint_id AND d.organisation_id = $1
    AND ($2::uuid IS NULL OR d.id = $2)
    AND ($3::uuid IS NULL OR e.job_id = $3)
    AND ($4::text IS NULL OR d.state = $4)
    AND d.state IN ('dead', 'aside', 'delivered')
RETURNING d.endpoint_id
"""


async def replay_deliveries(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    id: UUID | None,
    job_id: JobId | None,
    state: str | None,
) -> list[UUID]:
    """Reset deliveries as if never attempted; return their endpoints."""
    return [
        row[0] for row in await conn.fetch(_REPLAY_DELIVERIES, organisation_id, id, job_id, state)
    ]


_DROP_ENDPOINTS: Final = """
-- name: DropEndpoints
DELETE FROM deliver.endpoint e
WHERE e.created_at < now() - $1::interval
    AND NOT EXISTS (
        SELECT FROM deliver.delivery d WHERE d.endpoint_id = e.id
            AND (d.state IN ('pending', 'aside') OR d.created_at > now() - $1::interval))
"""


async def drop_endpoints(conn: Connection, *, keep: timedelta) -> int:
    """Delete endpoints whose last event is past its retention, with their deliveries."""
    return int((await conn.execute(_DROP_ENDPOINTS, keep)).rpartition(" ")[2])


_DROP_DELIVERED: Final = """
-- name: DropDelivered
DELETE FROM deliver.delivery
WHERE state = 'delivered' AND created_at < now() - $1::interval
"""


async def drop_delivered(conn: Connection, *, keep: timedelta) -> int:
    """Delete received deliveries past their retention."""
    return int((await conn.execute(_DROP_DELIVERED, keep)).rpartition(" ")[2])


_DELIVERIES_NEWEST: Final = """
-- name: DeliveriesNewest
SELECT
    d.id, d.name, e.job_id, d.number, e.url, d.state, d.attempts, d.answer, d.error,
    d.created_at, d.due_at, d.last_attempt_at, d.delivered_at
FROM deliver.delivery d JOIN deliver.endpoint e ON e.id = d.endpoint_id
WHERE d.organisation_id = $1
    AND (d.created_at, d.id) < ($2::timestamptz, $3::uuid)
    AND ($4::text IS NULL OR d.state = $4)
    AND ($5::uuid IS NULL OR e.job_id = $5)
ORDER BY d.created_at DESC, d.id DESC LIMIT $6::integer
"""


async def deliveries_newest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    before: UUID,
    state: str | None,
    job_id: JobId | None,
    most: int,
) -> list[DeliveriesNewestRow]:
    """Deliveries of an organisation before a position, newest first."""
    return [
        DeliveriesNewestRow(*row)
        for row in await conn.fetch(
            _DELIVERIES_NEWEST, organisation_id, at, before, state, job_id, most
        )
    ]
