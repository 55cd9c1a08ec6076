"""Typed functions of hosts.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId


class HostRow(Struct, frozen=True, gc=False):
    id: int
    name: str
    created_at: datetime
    gap: timedelta | None
    floor: timedelta | None
    bound: int | None
    in_flight: int | None
    pressure: int | None
    ready_at: datetime | None
    updated_at: datetime | None


class BusyHostsRow(Struct, frozen=True, gc=False):
    name: str
    gap: timedelta
    floor: timedelta
    in_flight: int
    pressure: int
    ready_at: datetime


class LatestVisitsRow(Struct, frozen=True, gc=False):
    id: int
    started_at: datetime
    took_ms: int
    exit_code: int
    message: str | None
    job_id: JobId | None
    task_id: TaskId | None
    url: str


class RobotsRow(Struct, frozen=True, gc=False):
    origin: str
    fetched_at: datetime
    expires_at: datetime
    status: int | None
    exit_code: int
    body: bytes


_LIST_HOSTS: Final = """
-- name: ListHosts
SELECT h.id, h.name, h.created_at, g.gap AS "gap?", g.floor AS "floor?", g.bound AS "bound?",
       g.in_flight AS "in_flight?", g.pressure AS "pressure?", g.ready_at AS "ready_at?",
       g.updated_at AS "updated_at?"
FROM frontier.host h LEFT JOIN queue.gate g ON g.name = 'host:' || h.name
WHERE h.organisation_id = $1 AND h.name > $2::text
ORDER BY h.name LIMIT $3::integer
"""


async def list_hosts(
    conn: Connection, *, organisation_id: OrganisationId, after: str, most: int
) -> list[HostRow]:
    """An organisation's hosts by name, after one, with their gates."""
    return [HostRow(*row) for row in await conn.fetch(_LIST_HOSTS, organisation_id, after, most)]


_GET_HOST: Final = """
-- name: GetHost
SELECT h.id, h.name, h.created_at, g.gap AS "gap?", g.floor AS "floor?", g.bound AS "bound?",
       g.in_flight AS "in_flight?", g.pressure AS "pressure?", g.ready_at AS "ready_at?",
       g.updated_at AS "updated_at?"
FROM frontier.host h LEFT JOIN queue.gate g ON g.name = 'host:' || h.name
WHERE h.organisation_id = $1 AND h.name = $2::text
"""


async def get_host(
    conn: Connection, *, organisation_id: OrganisationId, name: str
) -> HostRow | None:
    """A host by its name, with its gate."""
    row = await conn.fetchrow(_GET_HOST, organisation_id, name)
    return None if row is None else HostRow(*row)


_BUSY_HOSTS: Final = """
-- name: BusyHosts
SELECT DISTINCT g.name, g.gap, g.floor, g.in_flight, g.pressure, g.ready_at
FROM queue.lane l JOIN queue.gate g ON g.id = l.gate_id
WHERE l.organisation_id = $1 AND l.open AND l.awake
    AND starts_with(g.name, 'host:')
ORDER BY g.pressure DESC, g.ready_at DESC, g.name LIMIT $2::integer
"""


async def busy_hosts(
    conn: Connection, *, organisation_id: OrganisationId, most: int
) -> list[BusyHostsRow]:
    """The hosts that an organisation's open jobs stand at, those that slow them down most first."""
    return [BusyHostsRow(*row) for row in await conn.fetch(_BUSY_HOSTS, organisation_id, most)]


_LATEST_VISITS: Final = """
-- name: LatestVisits
SELECT v.id, v.started_at, v.took_ms, v.exit_code, v.message, v.job_id, v.task_id,
       u.url::text AS "url!"
FROM (
    SELECT x.id FROM frontier.url x WHERE x.host_id = $1
    ORDER BY x.id DESC LIMIT $2::integer
) few
JOIN frontier.url_text u ON u.id = few.id
CROSS JOIN LATERAL (
    SELECT w.id, w.started_at, w.took_ms, w.exit_code, w.message, w.job_id, w.task_id
    FROM archive.visit w WHERE w.url_id = few.id ORDER BY w.started_at DESC LIMIT 1
) v
ORDER BY v.started_at DESC LIMIT $3::integer
"""


async def latest_visits(
    conn: Connection, *, host_id: int, among: int, most: int
) -> list[LatestVisitsRow]:
    """The latest visits to the URLs of a host that were found last."""
    return [LatestVisitsRow(*row) for row in await conn.fetch(_LATEST_VISITS, host_id, among, most)]


_ROBOTS_OF_HOST: Final = """
-- name: RobotsOfHost
SELECT origin, fetched_at, expires_at, status, exit_code, body FROM frontier.robots
WHERE origin = ANY ($1::text[]) ORDER BY origin
"""


async def robots_of_host(conn: Connection, *, origins: Sequence[str]) -> list[RobotsRow]:
    """The robots.txt of a host as it was last read, by http and by https."""
    return [RobotsRow(*row) for row in await conn.fetch(_ROBOTS_OF_HOST, origins)]
