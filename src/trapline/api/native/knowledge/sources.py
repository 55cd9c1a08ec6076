"""`/api/knowledge-source`: the files, pages and sites that search covers."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.native.knowledge.applications import Progress, Seconds, interval_of, seconds_of
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant, Writer, actor_name
from trapline.db.keyset import FIRST_TIME, Order
from trapline.errors import Conflict
from trapline.knowledge import applications, sources
from trapline.knowledge.embedding.embedders import Embedders, default_config
from trapline.knowledge.source_config import read_config
from trapline.model import JobId, SourceId
from trapline.pipeline.ingest import (
    reembed,
    remote_crawls,
    source_operations,
    source_pages,
    source_schedules,
)
from trapline.pipeline.ingest.source_pages import JobParameters
from trapline.pipeline.sql import sources as reads
from trapline.pipeline.sql.sources import SourceDetails
from trapline.queue import jobs

router = APIRouter(prefix="/api/knowledge-source", tags=["knowledge"])

Kind = Literal["file", "url", "site"]
Status = Literal["pending", "processing", "completed", "failed", "cancelled"]
_OLDEST = Order(
    reads.list_sources,
    ("after_at", "after_id"),
    lambda row: (row.created_at, row.source_id),
    FIRST_TIME,
)


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
    def of(cls, row: SourceDetails, **more: Any) -> "Source":
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
    principal: Reader,
    application: Annotated[str | None, Query(max_length=300, description="Id or name.")] = None,
    status: Annotated[Status | None, Query(description="As it is noted in the source.")] = None,
    kind: Annotated[Kind | None, Query()] = None,
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[Source]:
    """List sources, oldest first."""
    owner = None
    if application is not None:
        owner = (await applications.find(conn, principal.organisation_id, application)).id
    filters = {
        "organisation_id": principal.organisation_id,
        "application_id": owner,
        "status": status,
        "kind": kind,
    }
    rows, following = await pagination.read_order(conn, _OLDEST, filters, cursor, most)
    return Page(items=[Source.of(row) for row in rows], next=following)


@router.get("/{source_id}")
async def show_source(conn: Tenant, principal: Reader, source_id: UUID) -> SourceDetail:
    """Show a source, and how many texts and passages of it are found."""
    return await _detail(conn, principal, source_id)


async def _detail(conn: Tenant, principal: Reader, source_id: UUID) -> SourceDetail:
    row = await source_operations.show(conn, principal.organisation_id, SourceId(source_id))
    counts = await reads.count_passages(conn, source_id=row.source_id)
    texts, passages, renewed = (
        (0, 0, 0) if counts is None else (counts.texts, counts.passages, counts.renewed)
    )
    source = Source.of(row)
    return SourceDetail(**source.model_dump(), texts=texts, passages=passages, renewed=renewed)


@router.patch("/{source_id}")
async def change_source(
    conn: Tenant, principal: Writer, source_id: UUID, change: SourceChange
) -> SourceDetail:
    """Rename a source, say how often it is fetched again, pause that or go on with it."""
    row = await sources.get(conn, principal.organisation_id, SourceId(source_id))
    if row.kind == "file" and change.rescrape_seconds is not None:
        raise Conflict("A file is not fetched, so it cannot be fetched again.")
    changed = await sources.update(
        conn,
        row,
        name=change.name,
        rescrape_every=interval_of(change.rescrape_seconds),
        keep_rescrape="rescrape_seconds" not in change.model_fields_set,
    )
    await source_schedules.sync(conn, changed)
    if change.fetching_paused is not None:
        await source_schedules.set_paused(conn, changed, paused=change.fetching_paused)
    return await _detail(conn, principal, source_id)


@router.delete("/{source_id}", status_code=204)
async def delete_source(conn: Tenant, principal: Writer, source_id: UUID) -> Response:
    """Delete a source with its indexed passages."""
    row = await sources.get(conn, principal.organisation_id, SourceId(source_id))
    await source_operations.delete(conn, row)
    return Response(status_code=204)


@router.get("/{scope}/progress")
async def source_progress(conn: Tenant, principal: Reader, scope: UUID) -> Progress:
    """Say how far a source is; or, given an application, how far that is with what was asked of it
    in the last 24 hours.
    """
    progress = await source_operations.progress(
        conn, principal.organisation_id, scope, now=datetime.now(UTC)
    )
    return Progress.model_validate(progress)


@router.post("/{source_id}/cancel")
async def cancel_source(conn: Tenant, principal: Writer, source_id: UUID) -> StartedJob:
    """Cancel the job that fills a source. For a file, that is its whole upload."""
    row = await sources.get(conn, principal.organisation_id, SourceId(source_id))
    return StartedJob(job_id=await source_operations.cancel(conn, row, by=actor_name(principal)))


@router.post("/{source_id}/retry", status_code=202)
async def retry_source(conn: Tenant, principal: Writer, source_id: UUID) -> StartedJob:
    """Retry the failed tasks of the source's job in a new job."""
    row = await sources.get(conn, principal.organisation_id, SourceId(source_id))
    if row.job_id is None:
        raise Conflict("Nothing was done for that source, so nothing failed.")
    return StartedJob(
        job_id=await source_operations.retry(conn, JobId(row.job_id), by=actor_name(principal))
    )


@router.post("/{source_id}/refresh", status_code=202)
async def refresh_source(
    request: Request, conn: Tenant, principal: Writer, source_id: UUID
) -> StartedJob:
    """Fetch a page or a site again now."""
    row = await sources.get(conn, principal.organisation_id, SourceId(source_id))
    settings = request.app.state.settings
    if row.provider == "firecrawl":
        remote_crawls.require_settings(settings.firecrawl)
    ttl, _ = jobs.retention_times(settings.retention)
    job_id = await source_pages.refresh(conn, row, JobParameters(ttl))
    return StartedJob(job_id=job_id)


class Renewal(BaseModel):
    """How a source's texts are to be made anew; what is left out is as new sources have it."""

    model_config = ConfigDict(extra="forbid")

    embedding_config: Annotated[
        dict[str, Any], Field(examples=[{"chunk_tokens": 512, "chunk_overlap": 64}])
    ] = {}


@router.post("/{source_id}/reprocess", status_code=202)
async def reprocess_source(
    request: Request, conn: Tenant, principal: Writer, source_id: UUID, renewal: Renewal
) -> StartedJob:
    """Cut and embed a source anew. What is there is found until the new is complete."""
    row = await sources.get(conn, principal.organisation_id, SourceId(source_id))
    settings = request.app.state.settings
    config = read_config(renewal.embedding_config, default_config(settings.embedding))
    Embedders(settings.embedding).named(config.model)
    job_id = await reembed.queue_reembedding(conn, principal.organisation_id, {row.id: config})
    return StartedJob(job_id=job_id)
