"""Applications: named groups of an organisation's knowledge sources."""

from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from trapline.db.connection import Connection
from trapline.errors import Conflict, InvalidInput, NotFound
from trapline.knowledge.sql import applications as queries
from trapline.knowledge.sql.applications import ApplicationRow
from trapline.model import ApplicationId, MemberId, OrganisationId

LONGEST_NAME: Final = 300
SHORTEST_INTERVAL: Final = timedelta(minutes=1)


async def create(
    conn: Connection,
    organisation_id: OrganisationId,
    name: str,
    *,
    rescrape_every: timedelta | None = None,
    created_by: MemberId | None = None,
) -> ApplicationRow:
    """Create an application; its name is unique in the organisation, regardless of case."""
    row = await queries.create_application(
        conn,
        organisation_id=organisation_id,
        name=checked_name(name),
        rescrape_every=checked_interval(rescrape_every),
        created_by=created_by,
    )
    if row is None:
        raise Conflict(f"There already is an application named {name!r}.")
    return row


async def find(conn: Connection, organisation_id: OrganisationId, reference: str) -> ApplicationRow:
    """Return an application by its id or its name."""
    try:
        row = await queries.get_application(conn, application_id=ApplicationId(UUID(reference)))
    except ValueError:
        row = await queries.application_named(
            conn, organisation_id=organisation_id, name=reference.replace("\x00", "")
        )
    if row is None or row.organisation_id != organisation_id:
        raise NotFound(f"There is no application {reference!r}.")
    return row


async def list_after(
    conn: Connection, organisation_id: OrganisationId, *, after: str = "", most: int = 100
) -> list[ApplicationRow]:
    return await queries.list_applications(
        conn, organisation_id=organisation_id, after=after, most=most
    )


async def update(
    conn: Connection,
    row: ApplicationRow,
    *,
    name: str | None = None,
    rescrape_every: timedelta | None = None,
    keep_rescrape: bool = True,
) -> ApplicationRow:
    """Rename an application, or set how often its sources are fetched again."""
    try:
        changed = await queries.change_application(
            conn,
            application_id=row.id,
            name=None if name is None else checked_name(name),
            keep_rescrape=keep_rescrape,
            rescrape_every=checked_interval(rescrape_every),
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(f"There already is an application named {name!r}.") from None
    if changed is None:
        raise NotFound(f"There is no application {row.id}.")
    return changed


async def delete(conn: Connection, application_id: ApplicationId) -> None:
    """Delete an application with its sources and their index."""
    await queries.delete_application(conn, application_id=application_id)


def checked_name(name: str) -> str:
    """Return a name without surrounding space; InvalidInput if it is not valid."""
    clean = name.strip()
    if not clean or len(clean) > LONGEST_NAME or not clean.isprintable():
        raise InvalidInput(f"A name has 1 to {LONGEST_NAME} printable characters.")
    return clean


def checked_interval(every: timedelta | None) -> timedelta | None:
    if every is not None and every < SHORTEST_INTERVAL:
        raise InvalidInput("A source is fetched again once a minute at most.")
    return every
