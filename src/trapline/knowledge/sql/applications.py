"""Typed functions of applications.sql, made by `make sql`: edit that file instead."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApplicationId, OrganisationId


class ApplicationRow(Struct, frozen=True, gc=False):
    id: ApplicationId
    organisation_id: OrganisationId
    name: str
    rescrape_every: timedelta | None
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime


_CREATE_APPLICATION: Final = """
-- name: CreateApplication
INSERT INTO knowledge.application (organisation_id, name, rescrape_every, created_by)
VALUES (
    $1, $2, $3::interval,
    $4::uuid
)
ON CONFLICT DO NOTHING
RETURNING *
"""


async def create_application(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    name: str,
    rescrape_every: timedelta | None,
    created_by: UUID | None,
) -> ApplicationRow | None:
    """Insert an application; no row if its name is taken."""
    row = await conn.fetchrow(
        _CREATE_APPLICATION, organisation_id, name, rescrape_every, created_by
    )
    return None if row is None else ApplicationRow(*row)


_GET_APPLICATION: Final = """
-- name: GetApplication
SELECT * FROM knowledge.application WHERE id = $1
"""


async def get_application(
    conn: Connection, *, application_id: ApplicationId
) -> ApplicationRow | None:
    """One application."""
    row = await conn.fetchrow(_GET_APPLICATION, application_id)
    return None if row is None else ApplicationRow(*row)


_APPLICATION_NAMED: Final = """
-- name: ApplicationNamed
SELECT * FROM knowledge.application
WHERE organisation_id = $1 AND lower(name) = lower($2::text)
"""


async def application_named(
    conn: Connection, *, organisation_id: OrganisationId, name: str
) -> ApplicationRow | None:
    """An application by its name, in whatever case."""
    row = await conn.fetchrow(_APPLICATION_NAMED, organisation_id, name)
    return None if row is None else ApplicationRow(*row)


_LIST_APPLICATIONS: Final = """
-- name: ListApplications
SELECT * FROM knowledge.application
WHERE organisation_id = $1 AND lower(name) > lower($2::text)
ORDER BY lower(name)
LIMIT $3::integer
"""


async def list_applications(
    conn: Connection, *, organisation_id: OrganisationId, after: str, most: int
) -> list[ApplicationRow]:
    """The applications of an organisation, by name, after one."""
    return [
        ApplicationRow(*row)
        for row in await conn.fetch(_LIST_APPLICATIONS, organisation_id, after, most)
    ]


_CHANGE_APPLICATION: Final = """
-- name: ChangeApplication
UPDATE knowledge.application
SET
    name = coalesce($1::text, name),
    rescrape_every = CASE
        WHEN $2::boolean THEN rescrape_every
        ELSE $3::interval END,
    updated_at = now()
WHERE id = $4
RETURNING *
"""


async def change_application(
    conn: Connection,
    *,
    name: str | None,
    keep_rescrape: bool,
    rescrape_every: timedelta | None,
    application_id: ApplicationId,
) -> ApplicationRow | None:
    """Update the given fields of an application; `keep_rescrape` keeps its interval."""
    row = await conn.fetchrow(
        _CHANGE_APPLICATION, name, keep_rescrape, rescrape_every, application_id
    )
    return None if row is None else ApplicationRow(*row)


_DELETE_APPLICATION: Final = """
-- name: DeleteApplication
DELETE FROM knowledge.application WHERE id = $1
"""


async def delete_application(conn: Connection, *, application_id: ApplicationId) -> int:
    """Delete an application with all its sources."""
    return int((await conn.execute(_DELETE_APPLICATION, application_id)).rpartition(" ")[2])
