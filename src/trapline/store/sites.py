"""Sites. Who names none gets the implicit one of their organisation and host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg

from trapline.db.connection import Connection
from trapline.errors import Conflict, InvalidInput, NotFound, Unavailable
from trapline.model import OrganisationId, SiteId
from trapline.store.sql import sites as queries
from trapline.store.sql.sites import SiteConfigRow, SiteRow

Status = Literal["active", "inactive"]
LONGEST_NAME: Final = 300
BEGINNING: Final = (datetime(1, 1, 1, tzinfo=UTC), SiteId(UUID(int=0)))
"""The place before the first site of a list."""
END: Final = (datetime(9000, 1, 1, tzinfo=UTC), SiteId(UUID(int=2**128 - 1)))
Sort = Literal["oldest", "newest", "updated", "name"]
Place = tuple[datetime, UUID] | str
_LAST_CONFIG: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Change:
    """What is to change of a site; None leaves things as they are."""

    name: str | None = None
    base_url: str | None = None
    status: Status | None = None
    config: Mapping[str, Any] | None = None
    note: str | None = None


async def implicit(conn: Connection, organisation_id: OrganisationId, origin: str) -> SiteId:
    """Return the site of an origin such as `https://example.com`, made on first use."""
    row = await queries.implicit_site(conn, organisation_id=organisation_id, base_url=origin)
    if row is None:
        await queries.ensure_site(
            conn, organisation_id=organisation_id, name=origin, base_url=origin
        )
        row = await queries.implicit_site(conn, organisation_id=organisation_id, base_url=origin)
    if row is None:
        # Someone gave this name to a site of their own: that one is meant.
        row = await queries.site_by_name(conn, organisation_id=organisation_id, name=origin)
    if row is None:
        raise Unavailable(f"The site of {origin} could not be made.")
    return row.id


async def create(  # noqa: PLR0913 (what it is, whose, by whom)
    conn: Connection,
    organisation_id: OrganisationId,
    name: str,
    base_url: str,
    *,
    config: Mapping[str, Any],
    created_by: str | None = None,
) -> SiteRow:
    """Register a site; its config is the first of its history."""
    row = await queries.create_site(
        conn,
        organisation_id=organisation_id,
        name=_named(name),
        base_url=base_url,
        config=dict(config),
        created_by=created_by,
    )
    if row is None:
        raise Conflict(f"There already is a site named {name!r}.")
    await _note(conn, row, created_by, None)
    return row


async def find(conn: Connection, organisation_id: OrganisationId, reference: str) -> SiteRow:
    """Return a site by its id or its name."""
    try:
        row = await queries.get_site(conn, site_id=SiteId(UUID(reference)))
    except ValueError:
        row = await queries.site_by_name(
            conn, organisation_id=organisation_id, name=reference.replace("\x00", "")
        )
    if row is None or row.organisation_id != organisation_id:
        raise NotFound(f"There is no site {reference!r}.")
    return row


async def listed(  # noqa: PLR0913 (whose, which, in which order, from where)
    conn: Connection,
    organisation_id: OrganisationId,
    sort: Sort,
    *,
    status: Status | None,
    implicit: bool | None,
    after: Place | None,
    most: int,
) -> list[SiteRow]:
    """Return the next sites after a place; each order has its own query and its own index."""
    which: dict[str, Any] = {
        "organisation_id": organisation_id,
        "status": status,
        "implicit": implicit,
        "most": most,
    }
    if sort == "name":
        name = after if isinstance(after, str) else ""
        return await queries.list_sites_named(conn, after_name=name, **which)
    ends = BEGINNING if sort == "oldest" else END
    at, site_id = after if isinstance(after, tuple) else ends
    if sort == "oldest":
        return await queries.list_sites(conn, after_at=at, after_id=site_id, **which)
    query = queries.list_sites_newest if sort == "newest" else queries.list_sites_updated
    return await query(conn, before_at=at, before_id=site_id, **which)


def place_of(row: SiteRow, sort: Sort) -> Place:
    """Return where a site stands in an order."""
    if sort == "name":
        return row.name
    return (row.updated_at if sort == "updated" else row.created_at, row.id)


async def find_to_purge(
    conn: Connection, organisation_id: OrganisationId, reference: str
) -> SiteRow:
    """As `find`, but a deleted site is found by its id, too."""
    if _is_uuid(reference):
        row = await queries.deleted_site(conn, site_id=SiteId(UUID(reference)))
        if row is not None and row.organisation_id == organisation_id:
            return row
    return await find(conn, organisation_id, reference)


async def update(
    conn: Connection, site: SiteRow, change: Change, *, by: str | None = None
) -> SiteRow:
    """Change a site as it was read; a new config joins its history."""
    try:
        row = await queries.update_site(
            conn,
            site_id=site.id,
            name=None if change.name is None else _named(change.name),
            base_url=change.base_url,
            status=change.status,
            config=None if change.config is None else dict(change.config),
            config_number=site.config_number,
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(f"There already is a site named {change.name!r}.") from None
    if row is None:
        raise Conflict("The site was changed or deleted by someone else; read it again.")
    if change.config is not None:
        await _note(conn, row, by, change.note)
    return row


async def history(
    conn: Connection, site: SiteRow, *, before: int | None = None, most: int = 100
) -> list[SiteConfigRow]:
    """Return the configs that a site had, newest first."""
    return await queries.config_history(
        conn, site_id=site.id, before=_LAST_CONFIG if before is None else before, most=most
    )


async def rollback(
    conn: Connection, site: SiteRow, number: int, *, by: str | None = None
) -> SiteRow:
    """Make an earlier config the present one. History only grows: it becomes a new number."""
    earlier = await queries.get_config(conn, site_id=site.id, number=number)
    if earlier is None:
        raise NotFound(f"The site {site.name!r} never had a config {number}.")
    change = Change(config=earlier.config, note=f"As number {number}.")
    return await update(conn, site, change, by=by)


async def delete(conn: Connection, site: SiteRow, *, purge: bool = False) -> None:
    """Hide a site and free its name; with `purge` maintenance removes everything under it."""
    await queries.delete_site(conn, site_id=site.id, purge=purge)


async def purge_some(conn: Connection, site_id: SiteId, *, most: int) -> int:
    """Delete a part of what a marked site holds; 0 when nothing but the site itself is left."""
    gone = await queries.purge_pages(conn, site_id=site_id, most=most)
    gone += await queries.purge_changes(conn, site_id=site_id, most=most)
    return gone + await queries.purge_contents(conn, site_id=site_id, most=most)


def forbidden_names(name: str) -> Sequence[str]:
    """Say what keeps a text from being a site's name; nothing when it can be."""
    problems = []
    if not name.strip():
        problems.append("A site needs a name.")
    if len(name) > LONGEST_NAME:
        problems.append(f"A site's name has at most {LONGEST_NAME} characters.")
    if any(ord(character) < ord(" ") for character in name):
        problems.append("A site's name has no control characters.")
    if _is_uuid(name):
        problems.append("A site's name cannot look like an id.")
    return problems


def _named(name: str) -> str:
    problems = forbidden_names(name)
    if problems:
        raise InvalidInput(problems[0])
    return name.strip()


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


async def _note(conn: Connection, site: SiteRow, by: str | None, note: str | None) -> None:
    await queries.note_config(
        conn,
        site_id=site.id,
        number=site.config_number,
        organisation_id=site.organisation_id,
        config=site.config,
        created_by=by,
        note=note,
    )
