"""Sites. A page without a named site belongs to the implicit one of its organisation, host and variant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg

from trapline.db.connection import Connection
from trapline.db.keyset import FIRST_NAME, FIRST_TIME, LAST_TIME, KeysetList, Order
from trapline.errors import Conflict, InvalidInput, NotFound, Unavailable
from trapline.model import OrganisationId, SiteId
from trapline.store.sql import sites as queries
from trapline.store.sql.sites import SiteConfigRow, SiteRow

SiteStatus = Literal["active", "inactive"]
LONGEST_NAME: Final = 300
SiteOrder = Literal["oldest", "newest", "updated", "name"]
_LAST_CONFIG: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SiteUpdate:
    """Changes to a site; None leaves a field as it is."""

    name: str | None = None
    base_url: str | None = None
    status: SiteStatus | None = None
    config: Mapping[str, Any] | None = None
    note: str | None = None


async def get_or_create_implicit(
    conn: Connection, organisation_id: OrganisationId, origin: str, variant: bytes = b""
) -> SiteId:
    """Return the site of an origin such as `https://example.com` and a variant, made on first use."""
    key: dict[str, Any] = {
        "organisation_id": organisation_id,
        "base_url": origin,
        "variant": variant,
    }
    name = f"{origin} {variant.hex()}" if variant else origin
    row = await queries.implicit_site(conn, **key)
    if row is None:
        await queries.ensure_site(conn, name=name, **key)
        row = await queries.implicit_site(conn, **key)
    if row is None:
        # Someone gave this name to a site of their own: that one is meant.
        row = await queries.site_by_name(conn, organisation_id=organisation_id, name=name)
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
    """Register a site with the first config of its history."""
    row = await queries.create_site(
        conn,
        organisation_id=organisation_id,
        name=_checked_name(name),
        base_url=base_url,
        config=dict(config),
        created_by=created_by,
    )
    if row is None:
        raise Conflict(f"A site named {name!r} exists already.")
    await _add_config(conn, row, created_by, None)
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


_BEFORE: Final = ("before_at", "before_id")
_ORDERS: Final[Mapping[SiteOrder, Order[SiteRow]]] = {
    "oldest": Order(
        queries.list_sites, ("after_at", "after_id"), attrgetter("created_at", "id"), FIRST_TIME
    ),
    "newest": Order(queries.list_sites_newest, _BEFORE, attrgetter("created_at", "id"), LAST_TIME),
    "updated": Order(
        queries.list_sites_updated, _BEFORE, attrgetter("updated_at", "id"), LAST_TIME
    ),
    "name": Order(queries.list_sites_named, ("after_name",), attrgetter("name"), FIRST_NAME),
}


def sites_of(
    organisation_id: OrganisationId,
    *,
    status: SiteStatus | None = None,
    implicit: bool | None = None,
) -> KeysetList[SiteOrder, SiteRow]:
    filters = {"status": status, "implicit": implicit}
    return KeysetList(_ORDERS, {"organisation_id": organisation_id} | filters)


async def find_to_purge(
    conn: Connection, organisation_id: OrganisationId, reference: str
) -> SiteRow:
    """As `find`, but also find a deleted site by its id."""
    if _is_uuid(reference):
        row = await queries.deleted_site(conn, site_id=SiteId(UUID(reference)))
        if row is not None and row.organisation_id == organisation_id:
            return row
    return await find(conn, organisation_id, reference)


async def update(
    conn: Connection, site: SiteRow, change: SiteUpdate, *, by: str | None = None
) -> SiteRow:
    """Update a site that was not changed since it was read; add a new config to its history."""
    try:
        row = await queries.update_site(
            conn,
            site_id=site.id,
            name=None if change.name is None else _checked_name(change.name),
            base_url=change.base_url,
            status=change.status,
            config=None if change.config is None else dict(change.config),
            config_number=site.config_number,
        )
    except asyncpg.UniqueViolationError:
        raise Conflict(f"A site named {change.name!r} exists already.") from None
    if row is None:
        raise Conflict("The site was changed or deleted meanwhile; read it again.")
    if change.config is not None:
        await _add_config(conn, row, by, change.note)
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
    """Restore an earlier config, as a new number of the history."""
    earlier = await queries.get_config(conn, site_id=site.id, number=number)
    if earlier is None:
        raise NotFound(f"The site {site.name!r} never had a config {number}.")
    change = SiteUpdate(config=earlier.config, note=f"Rollback to number {number}.")
    return await update(conn, site, change, by=by)


async def delete(conn: Connection, site: SiteRow, *, purge: bool = False) -> None:
    """Soft-delete a site and free its name; with `purge` maintenance deletes all its rows."""
    await queries.delete_site(conn, site_id=site.id, purge=purge)


async def purge_batch(conn: Connection, site_id: SiteId, *, most: int) -> int:
    """Delete a batch of a marked site's rows; 0 when only the site itself is left."""
    deleted = await queries.purge_pages(conn, site_id=site_id, most=most)
    deleted += await queries.purge_changes(conn, site_id=site_id, most=most)
    return deleted + await queries.purge_contents(conn, site_id=site_id, most=most)


def name_problems(name: str) -> Sequence[str]:
    """Return what is wrong with a site's name; empty if it is valid."""
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


def _checked_name(name: str) -> str:
    problems = name_problems(name)
    if problems:
        raise InvalidInput(problems[0])
    return name.strip()


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


async def _add_config(conn: Connection, site: SiteRow, by: str | None, note: str | None) -> None:
    await queries.add_config(
        conn,
        site_id=site.id,
        number=site.config_number,
        organisation_id=site.organisation_id,
        config=site.config,
        created_by=by,
        note=note,
    )
