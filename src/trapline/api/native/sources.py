"""`/api/knowledge-source`: files, pages and sites that search reads."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from trapline.api import paging
from trapline.api.access import Reader, Tenant, Writer, name_of
from trapline.api.native.applications import Progress, Seconds, interval_of, seconds_of
from trapline.api.paging import Cursor, Moment, Most, Page
from trapline.errors import Conflict
from trapline.knowledge import applications, sources
from trapline.knowledge.config import read_config
from trapline.knowledge.embedding.embedders import Embedders, default_config
from trapline.model import JobId, SourceId
from trapline.pipeline import ingestion, remote_crawls, renewing, source_pages, source_schedules
from trapline.pipeline.source_pages import Errand
from trapline.pipeline.sql import ingestion as reads
from trapline.pipeline.sql.ingestion import ShownSource
from trapline.queue import jobs

router = APIRouter(prefix="/api/knowledge-source", tags=["knowledge"])

Kind = Literal["file", "url", "site"]
Status = Literal["pending", "processing", "completed", "failed", "cancelled"]
_FIRST = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


class Source(BaseModel):
    """Something that search reads."""

    id: UUID
    application_id: UUID | None
    kind: Kind
    name: str
    uri: str
    status: Status
    error: str | None
    provider: str
    config: dict[str, Any]
    generation: int
    rescrape_seconds: Annotated[
        float | None, Field(description="Its own interval; null: that of its application.")
    ]
    fetched_every_seconds: Annotated[
        float | None, Field(description="How often it is fetched again; null: never.")
    ]
    next_fetch_at: Annotated[datetime | None, Field(description="Null while that is paused.")]
    fetching_paused: bool
    schedule_id: UUID | None
    fetching: Annotated[
        dict[str, Any], Field(description="Limits and options that it is fetched with.")
    ]
    job_id: UUID | None
    renewal_job_id: Annotated[
        UUID | None, Field(description="The job that makes its texts anew, while it does.")
    ]
    size: int | None
    content_type: str | None
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: ShownSource, **more: Any) -> "Source":
        names = set(cls.model_fields) - {"id", "rescrape_seconds", "fetched_every_seconds", *more}
        return cls(
            id=row.source_id,
            rescrape_seconds=seconds_of(row.rescrape_every),
            fetched_every_seconds=seconds_of(row.fetched_every),
            **{name: getattr(row, name) for name in names},
            **more,
        )


class SourceDetail(Source):
    """A source with what there is of it to be found."""

    texts: int
    passages: int
    renewed: Annotated[int, Field(description="Texts that were made anew so far, not found yet.")]


class SourceChange(BaseModel):
    """What is to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(min_length=1, max_length=300)] = None
    rescrape_seconds: Seconds = None
    fetching_paused: Annotated[
        bool | None, Field(description="Whether fetching it again by itself waits.")
    ] = None


class StartedJob(BaseModel):
    """The job that does it."""

    job_id: UUID


@router.get("")
async def list_sources(
    conn: Tenant,
    who: Reader,
    application: Annotated[str | None, Query(max_length=300, description="Id or name.")] = None,
    status: Annotated[Status | None, Query(description="As it is noted in the source.")] = None,
    kind: Annotated[Kind | None, Query()] = None,
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[Source]:
    """List sources, oldest first."""
    found = None
    if application is not None:
        found = await applications.find(conn, who.organisation_id, application)
    after = paging.decode(cursor, tuple[Moment, UUID]) or _FIRST
    rows = await reads.list_sources(
        conn,
        organisation_id=who.organisation_id,
        application_id=None if found is None else found.id,
        status=status,
        kind=kind,
        after_at=after[0],
        after_id=after[1],
        most=most + 1,
    )
    following = paging.cut(rows, most, lambda row: (row.created_at, row.source_id))
    return Page(items=[Source.of(row) for row in rows[:most]], next=following)


@router.get("/{source_id}")
async def show_source(conn: Tenant, who: Reader, source_id: UUID) -> SourceDetail:
    """Show a source, and how many texts and passages of it are found."""
    return await _detail(conn, who, source_id)


async def _detail(conn: Tenant, who: Reader, source_id: UUID) -> SourceDetail:
    row = await ingestion.shown(conn, who.organisation_id, SourceId(source_id))
    counts = await reads.count_passages(conn, source_id=row.source_id)
    texts, found, renewed = (
        (0, 0, 0) if counts is None else (counts.texts, counts.passages, counts.renewed)
    )
    shown = Source.of(row)
    return SourceDetail(**shown.model_dump(), texts=texts, passages=found, renewed=renewed)


@router.patch("/{source_id}")
async def change_source(
    conn: Tenant, who: Writer, source_id: UUID, change: SourceChange
) -> SourceDetail:
    """Rename a source, say how often it is fetched again, pause that or go on with it."""
    row = await sources.get(conn, who.organisation_id, SourceId(source_id))
    if row.kind == "file" and change.rescrape_seconds is not None:
        raise Conflict("A file is not fetched, so it cannot be fetched again.")
    changed = await sources.change(
        conn,
        row,
        name=change.name,
        rescrape_every=interval_of(change.rescrape_seconds),
        keep_rescrape="rescrape_seconds" not in change.model_fields_set,
    )
    await source_schedules.follow(conn, changed)
    if change.fetching_paused is not None:
        await source_schedules.hold(conn, changed, paused=change.fetching_paused)
    return await _detail(conn, who, source_id)


@router.delete("/{source_id}", status_code=204)
async def delete_source(conn: Tenant, who: Writer, source_id: UUID) -> Response:
    """Delete a source with all that search reads of it."""
    row = await sources.get(conn, who.organisation_id, SourceId(source_id))
    await ingestion.delete(conn, row)
    return Response(status_code=204)


@router.get("/{scope}/progress")
async def source_progress(conn: Tenant, who: Reader, scope: UUID) -> Progress:
    """Say how far a source is; or, given an application, how far that is with what was asked of it
    in the last 24 hours.
    """
    found = await ingestion.progress(conn, who.organisation_id, scope, now=datetime.now(UTC))
    return Progress.model_validate(found)


@router.post("/{source_id}/cancel")
async def cancel_source(conn: Tenant, who: Writer, source_id: UUID) -> StartedJob:
    """Cancel the job that fills a source. That of a file is its whole upload."""
    row = await sources.get(conn, who.organisation_id, SourceId(source_id))
    return StartedJob(job_id=await ingestion.cancel(conn, row, by=name_of(who)))


@router.post("/{source_id}/retry", status_code=202)
async def retry_source(conn: Tenant, who: Writer, source_id: UUID) -> StartedJob:
    """Run what failed in the source's job again, in a new job."""
    row = await sources.get(conn, who.organisation_id, SourceId(source_id))
    if row.job_id is None:
        raise Conflict("Nothing was done for that source, so nothing failed.")
    return StartedJob(job_id=await ingestion.retry(conn, JobId(row.job_id), by=name_of(who)))


@router.post("/{source_id}/refresh", status_code=202)
async def refresh_source(
    request: Request, conn: Tenant, who: Writer, source_id: UUID
) -> StartedJob:
    """Fetch a page or a site again now."""
    row = await sources.get(conn, who.organisation_id, SourceId(source_id))
    settings = request.app.state.settings
    if row.provider == "firecrawl":
        remote_crawls.require(settings)
    ttl, _ = jobs.times_kept(settings)
    job_id = await source_pages.refresh(conn, row, Errand(ttl))
    return StartedJob(job_id=job_id)


class Renewal(BaseModel):
    """How a source's texts are to be made anew; what is left out is as new sources have it."""

    model_config = ConfigDict(extra="forbid")

    embedding_config: Annotated[
        dict[str, Any], Field(examples=[{"chunk_tokens": 512, "chunk_overlap": 64}])
    ] = {}


@router.post("/{source_id}/reprocess", status_code=202)
async def reprocess_source(
    request: Request, conn: Tenant, who: Writer, source_id: UUID, wish: Renewal
) -> StartedJob:
    """Cut and embed a source anew. What is there is found until the new is complete."""
    row = await sources.get(conn, who.organisation_id, SourceId(source_id))
    settings = request.app.state.settings
    config = read_config(wish.embedding_config, default_config(settings))
    Embedders(settings).named(config.model)
    job_id = await renewing.renew(conn, who.organisation_id, {row.id: config})
    return StartedJob(job_id=job_id)
