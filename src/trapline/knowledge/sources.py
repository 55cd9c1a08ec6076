"""Knowledge sources: files, pages and sites whose texts are searched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict, NotFound
from trapline.knowledge import progress_counters
from trapline.knowledge.applications import LONGEST_NAME, checked_interval, checked_name
from trapline.knowledge.source_config import IngestConfig
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


@dataclass(frozen=True, slots=True)
class SourceRef:
    """The source that a job's results are indexed into."""

    id: SourceId
    application_id: ApplicationId | None


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


async def get_or_create(conn: Connection, new: NewSource) -> SourceRow:
    """Return the source of a URL in an application, created on first use."""
    # Two concurrent callers with one URL get the same source.
    key = f"{new.organisation_id} {new.application_id} {new.uri}"
    await queries.lock_source_key(conn, key=key)
    row = await queries.source_at(
        conn,
        organisation_id=new.organisation_id,
        application_id=new.application_id,
        uri=new.uri,
        kind=new.kind,
        provider=new.provider,
    )
    return await _add(conn, new) if row is None else row


async def get_or_create_for_site(conn: Connection, new: NewSource, site_id: SiteId) -> SourceRow:
    """Return the source of a site's own pages, created on first use."""
    asked: dict[str, Any] = {"organisation_id": new.organisation_id, "site_id": site_id}
    row = await queries.source_of_site(conn, **asked)
    if row is None:
        await _insert(conn, new)
        row = await queries.source_of_site(conn, **asked)
    if row is None:
        raise NotFound("The site's source is gone.")
    return row


async def begin_job(conn: Connection, source_ids: Sequence[SourceId], job_id: JobId) -> None:
    """Record the job that fetches sources, and reset their counters."""
    await queries.begin_job(conn, source_ids=source_ids, job_id=job_id)
    await progress_counters.delete(conn, source_ids, but_job_id=job_id)


async def update(
    conn: Connection,
    row: SourceRow,
    *,
    name: str | None = None,
    rescrape_every: timedelta | None = None,
    keep_rescrape: bool = True,
) -> SourceRow:
    """Rename a source, or set how often it is fetched again."""
    changed = await queries.change_source(
        conn,
        source_id=row.id,
        name=None if name is None else checked_name(name),
        keep_rescrape=keep_rescrape,
        rescrape_every=checked_interval(rescrape_every),
    )
    if changed is None:
        raise NotFound(f"There is no knowledge source {row.id}.")
    return changed


async def delete(
    conn: Connection, source_ids: Sequence[SourceId], application_id: ApplicationId | None = None
) -> int:
    """Delete sources with their index, and their application's counters.

    Locks sources before counters, as the end of a job does.
    """
    deleted = await queries.delete_sources(conn, source_ids=source_ids)
    scopes: list[UUID] = [*source_ids, *([application_id] if application_id else [])]
    await progress_counters.delete(conn, scopes)
    return deleted


def short_name(text: str) -> str:
    """Return a printable name of bounded length for a file name or URL."""
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return clean[-LONGEST_NAME:].strip() or "unnamed"


async def _add(conn: Connection, new: NewSource) -> SourceRow:
    row = await _insert(conn, new)
    if row is None:
        raise Conflict("The source is being created by another request.")
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
        rescrape_every=checked_interval(new.rescrape_every),
        created_by=new.created_by,
    )
