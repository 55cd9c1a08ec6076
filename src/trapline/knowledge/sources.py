"""Sources: files, pages and sites whose texts are searched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict, NotFound
from trapline.knowledge import tally
from trapline.knowledge.applications import LONGEST_NAME, named, often
from trapline.knowledge.config import IngestConfig
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import (
    ApplicationId,
    JobId,
    MemberId,
    OrganisationId,
    SiteId,
    SourceId,
    new_uuid,
)

Kind = Literal["file", "url", "site"]
Provider = Literal["trapline", "firecrawl"]
LONGEST_URI: Final = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSource:
    """A source that is fetched."""

    organisation_id: OrganisationId
    kind: Kind
    uri: str
    config: IngestConfig
    fetching: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    application_id: ApplicationId | None = None
    provider: Provider = "trapline"
    site_id: SiteId | None = None
    rescrape_every: timedelta | None = None
    created_by: MemberId | None = None


def new_id() -> SourceId:
    return SourceId(new_uuid())


async def get(conn: Connection, organisation_id: OrganisationId, source_id: SourceId) -> SourceRow:
    row = await queries.get_source(conn, source_id=source_id)
    if row is None or row.organisation_id != organisation_id:
        raise NotFound(f"There is no knowledge source {source_id}.")
    return row


async def ensure(conn: Connection, new: NewSource) -> SourceRow:
    """Return the source of an address in an application, made on first use."""
    # Two who ask for the same address at once get the same source.
    shelf = f"{new.organisation_id} {new.application_id} {new.uri}"
    await queries.lock_shelf(conn, shelf=shelf)
    row = await queries.source_at(
        conn,
        organisation_id=new.organisation_id,
        application_id=new.application_id,
        uri=new.uri,
        kind=new.kind,
        provider=new.provider,
    )
    return await _add(conn, new) if row is None else row


async def of_site(conn: Connection, new: NewSource, site_id: SiteId) -> SourceRow:
    """Return the source of a site's own pages, made on first use."""
    asked: dict[str, Any] = {"organisation_id": new.organisation_id, "site_id": site_id}
    row = await queries.source_of_site(conn, **asked)
    if row is None:
        await _insert(conn, new)
        row = await queries.source_of_site(conn, **asked)
    if row is None:
        raise NotFound("The site's source is gone.")
    return row


async def begin(conn: Connection, source_ids: Sequence[SourceId], job_id: JobId) -> None:
    """Note the job that fills sources that are fetched; they are counted from the start."""
    await queries.begin_job(conn, source_ids=source_ids, job_id=job_id)
    await tally.forget(conn, source_ids, but_job_id=job_id)


async def change(
    conn: Connection,
    row: SourceRow,
    *,
    name: str | None = None,
    rescrape_every: timedelta | None = None,
    keep_rescrape: bool = True,
) -> SourceRow:
    """Rename a source, or say how often it is fetched again."""
    changed = await queries.change_source(
        conn,
        source_id=row.id,
        name=None if name is None else named(name),
        keep_rescrape=keep_rescrape,
        rescrape_every=often(rescrape_every),
    )
    if changed is None:
        raise NotFound(f"There is no knowledge source {row.id}.")
    return changed


async def delete(
    conn: Connection, source_ids: Sequence[SourceId], application_id: ApplicationId | None = None
) -> int:
    """Delete sources with all that search reads of them, and what is counted of their application.

    Sources before counts: a job that ends takes them in that order too.
    """
    deleted = await queries.delete_sources(conn, source_ids=source_ids)
    scopes: list[UUID] = [*source_ids, *([application_id] if application_id else [])]
    await tally.forget(conn, scopes)
    return deleted


def short_name(text: str) -> str:
    """Make a name of whatever a file or an address is called."""
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return clean[-LONGEST_NAME:].strip() or "unnamed"


async def _add(conn: Connection, new: NewSource) -> SourceRow:
    row = await _insert(conn, new)
    if row is None:
        raise Conflict("That source is being made already.")
    return row


async def _insert(conn: Connection, new: NewSource) -> SourceRow | None:
    return await queries.add_source(
        conn,
        id=new_id(),
        organisation_id=new.organisation_id,
        application_id=new.application_id,
        kind=new.kind,
        name=short_name(new.name or new.uri),
        uri=new.uri,
        config=msgspec.to_builtins(new.config),
        fetching=dict(new.fetching),
        provider=new.provider,
        job_id=None,
        site_id=new.site_id,
        rescrape_every=often(new.rescrape_every),
        created_by=new.created_by,
    )
