"""`/api/jobs`: what was asked for, how far it is, and what came of it."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from msgspec.structs import asdict
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from trapline.api import paging
from trapline.api.access import Reader, Tenant, Writer, name_of
from trapline.api.native import exports
from trapline.api.paging import Cursor, Most, Page
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.db.tenancy import Principal
from trapline.model import JobId, SiteId
from trapline.pipeline import ingestion, pagefiles, templates
from trapline.pipeline.results import counts as counts_of_pages
from trapline.pipeline.sql import results
from trapline.pipeline.templates import Order
from trapline.queue import jobs, listing, quotas, tasks, why
from trapline.queue.jobs import Status
from trapline.queue.listing import Wanted
from trapline.queue.sql import jobs as queries
from trapline.queue.sql import tally
from trapline.queue.sql.jobs import JobRow

router = APIRouter(prefix="/api/jobs", tags=["jobs"])

_EXAMPLE_ID = "0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10"
_ONE_HOUR = timedelta(hours=1)
_LONGEST_SPAN = timedelta(days=400)


class Job(BaseModel):
    """A job with its counters. `total` is the sum of the others."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[UUID, Field(examples=[_EXAMPLE_ID])]
    kind: Annotated[str, Field(examples=["crawl"])]
    status: Status
    priority: Annotated[int, Field(description="1 to 10; higher runs first.", examples=[5])]
    total: int
    remaining: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    found: int
    from_sitemap: int
    limit: int | None
    percent: float
    zero_data_retention: bool
    parent_id: UUID | None
    retry_of: UUID | None
    retry_count: int
    max_retries: int
    created_at: datetime
    scheduled_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    cancelled_by: str | None
    cancel_reason: str | None
    error: str | None
    options: dict[str, Any]
    variables: dict[str, Any]
    metadata: dict[str, Any]

    @classmethod
    def of(cls, row: JobRow) -> "Job":
        own = {
            "priority": min(10, max(1, 5 - row.priority)),
            "limit": row.task_limit,
            "percent": jobs.percent(row),
        }
        return cls.model_validate(asdict(row) | own)


class PageCounts(BaseModel):
    """Of a job's tasks those that are pages: not the reading of sitemaps and the like."""

    model_config = ConfigDict(from_attributes=True)

    completed: int
    remaining: int
    failed: int
    skipped: int


class ShownJob(Job):
    """A job with how many of its pages are done."""

    pages: PageCounts


class NewJob(BaseModel):
    """A `crawl`, `map` or `scrape` of a `url`, or a `batch_scrape` of `urls`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "kind": "crawl",
                "url": "https://example.com/docs/",
                "options": {"limit": 500},
                "priority": 7,
            }
        },
    )

    kind: Literal["crawl", "batch_scrape", "scrape", "map"] = "crawl"
    url: Annotated[str | None, Field(max_length=10_000)] = None
    urls: Annotated[list[str] | None, Field(max_length=templates.MOST_URLS)] = None
    options: dict[str, Any] = {}
    site_id: UUID | None = None
    priority: Annotated[int, Field(ge=1, le=10, description="Higher runs first.")] = 5
    metadata: dict[str, Any] = {}

    def order(self, who: Principal) -> Order:
        places = {"url": self.url, "urls": self.urls}
        given = {name: value for name, value in places.items() if value is not None}
        return Order(
            who.organisation_id,
            {"kind": self.kind, "options": self.options} | given,
            self.priority,
            None if self.site_id is None else SiteId(self.site_id),
            self.metadata,
        )


class Reason(BaseModel):
    """Why something is done, for those who ask later."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str | None, Field(max_length=2000, pattern=r"^[^\x00]*$")] = None


class JobCount(BaseModel):
    """How many jobs of a kind are in a state."""

    model_config = ConfigDict(from_attributes=True)

    kind: str
    status: Status
    jobs: int


class JobHour(BaseModel):
    """The jobs that were made in an hour, and how many of them have ended how."""

    model_config = ConfigDict(from_attributes=True)

    hour: datetime
    created: int
    completed: int
    failed: int
    cancelled: int


class JobTask(BaseModel):
    """A task of a job."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    kind: str
    status: Literal["open", "completed", "failed", "skipped", "cancelled"]
    payload: Any
    priority: Annotated[int, Field(description="Lower runs first, within its job.")]
    attempts: int | None
    code: int | None
    error: str | None
    created_at: datetime
    finished_at: datetime | None


class JobError(BaseModel):
    """A task that failed for good."""

    model_config = ConfigDict(from_attributes=True)

    task_id: int
    kind: str
    payload: Any
    code: int | None
    error: str
    failed_at: datetime
    resolution: Literal["retried", "resolved"] | None


class Link(BaseModel):
    """A URL of a site, with what is known of its page."""

    model_config = ConfigDict(from_attributes=True)

    url: str
    title: str | None
    description: str | None


class Explanation(BaseModel):
    """What a job waits for."""

    why: str


Since = Annotated[AwareDatetime | None, Query(description="Made at this time or later.")]
Until = Annotated[AwareDatetime | None, Query(description="Made before this time.")]


@router.get("")
async def list_jobs(
    conn: Tenant,
    who: Reader,
    status: Status | None = None,
    kind: Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")] = None,
    since: Since = None,
    until: Until = None,
    sort: listing.Order = "newest",
    cursor: Cursor = None,
    most: Most = 50,
) -> Page[Job]:
    """List jobs."""
    wanted = Wanted(
        who.organisation_id,
        status,
        kind,
        listing.EVER if since is None else max(since, listing.EVER),
        listing.NEVER if until is None else min(until, listing.NEVER),
        sort,
    )
    place = paging.decode(cursor, tuple[paging.Moment, UUID])
    rows = await listing.listed(conn, wanted, after=place, most=most + 1)
    following = paging.cut(rows, most, lambda row: (row.created_at, row.id))
    return Page(items=[Job.of(row) for row in rows[:most]], next=following)


@router.post("", status_code=201)
async def create_job(conn: Tenant, who: Writer, new: NewJob) -> Job:
    """Start a job; it runs as soon as a worker is there."""
    return Job.of(await jobs.get(conn, await templates.place(conn, new.order(who))))


@router.get("/counts")
async def count_jobs(
    conn: Tenant, who: Reader, since: Since = None, until: Until = None
) -> list[JobCount]:
    """Count jobs by kind and state, made within whole hours."""
    rows = await tally.count_jobs(
        conn,
        organisation_id=who.organisation_id,
        since=listing.EVER if since is None else max(since, listing.EVER),
        until=listing.NEVER if until is None else min(until, listing.NEVER),
    )
    return [JobCount.model_validate(row) for row in rows]


@router.get("/hours")
async def jobs_by_hour(
    conn: Tenant, who: Reader, since: Since = None, until: Until = None
) -> list[JobHour]:
    """Count jobs by the hour they were made in: the last day, if not said otherwise."""
    end = min(until or datetime.now(UTC) + _ONE_HOUR, listing.NEVER)
    begin = max(since or end - timedelta(days=1), end - _LONGEST_SPAN, listing.EVER)
    rows = await tally.jobs_by_hour(
        conn, organisation_id=who.organisation_id, since=begin, until=end
    )
    return [JobHour.model_validate(row) for row in rows]


async def _find(conn: Connection, job_id: UUID) -> JobRow:
    return await listing.find(conn, JobId(job_id), now=datetime.now(UTC))


@router.get("/{job_id}")
async def get_job(conn: Tenant, who: Reader, job_id: UUID) -> ShownJob:
    """Show a job."""
    del who
    job = Job.of(await _find(conn, job_id))
    pages = PageCounts.model_validate(await counts_of_pages(conn, JobId(job_id)))
    return ShownJob(**job.model_dump(), pages=pages)


@router.delete("/{job_id}", status_code=204)
async def delete_job(conn: Tenant, who: Writer, job_id: UUID) -> None:
    """Forget an ended job with its tasks and results; what it stored of pages stays."""
    del who
    await listing.delete(conn, (await _find(conn, job_id)).id)


@router.post("/{job_id}/cancel")
async def cancel_job(conn: Tenant, who: Writer, job_id: UUID, given: Reason | None = None) -> Job:
    """End a job: queued tasks at once, running ones within seconds."""
    found = await _find(conn, job_id)
    await jobs.cancel(
        conn, found.id, by=name_of(who), reason=None if given is None else given.reason
    )
    return Job.of(await jobs.get(conn, found.id))


@router.post("/{job_id}/pause")
async def pause_job(conn: Tenant, who: Writer, job_id: UUID) -> Job:
    """Let no more tasks start."""
    found = await _find(conn, job_id)
    await jobs.pause(conn, found.id, by=name_of(who))
    return Job.of(await jobs.get(conn, found.id))


@router.post("/{job_id}/resume")
async def resume_job(conn: Tenant, who: Writer, job_id: UUID) -> Job:
    """Go on with a paused job."""
    found = await _find(conn, job_id)
    await jobs.resume(conn, found.id, by=name_of(who))
    return Job.of(await jobs.get(conn, found.id))


@router.post("/{job_id}/retry", status_code=201)
async def retry_job(conn: Tenant, who: Writer, job_id: UUID) -> Job:
    """Run a job's failed tasks again, in a new job that names the old one."""
    now = datetime.now(UTC)
    await quotas.require_pages(conn, who.organisation_id, now=now)
    found = await _find(conn, job_id)
    again = await ingestion.retry(conn, found.id, by=name_of(who))
    return Job.of(await jobs.get(conn, again))


@router.get("/{job_id}/why")
async def why_job(conn: Tenant, who: Reader, job_id: UUID) -> Explanation:
    """Say what a job's next task waits for."""
    del who
    found = await _find(conn, job_id)
    return Explanation(why=await why.why_job(conn, found.id, now=datetime.now(UTC)))


@router.get("/{job_id}/tasks")
async def list_tasks(
    conn: Tenant, who: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[JobTask]:
    """List a job's tasks in the order in which they were added."""
    del who
    found = await _find(conn, job_id)
    rows = await tasks.list_of_job(
        conn, found.id, after=paging.decode(cursor, paging.Number) or 0, most=most + 1
    )
    following = paging.cut(rows, most, lambda row: row.id)
    return Page(items=[JobTask.model_validate(row) for row in rows[:most]], next=following)


@router.get("/{job_id}/errors")
async def list_errors(
    conn: Tenant, who: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[JobError]:
    """List a job's tasks that failed for good."""
    del who
    found = await _find(conn, job_id)
    after = paging.decode(cursor, paging.Number) or 0
    rows = await queries.errors_of_job(conn, job_id=found.id, after=after, most=most + 1)
    following = paging.cut(rows, most, lambda row: row.task_id)
    return Page(items=[JobError.model_validate(row) for row in rows[:most]], next=following)


@router.get("/{job_id}/links")
async def list_links(
    conn: Tenant, who: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[Link]:
    """List the URLs that a map found, in the order in which it found them."""
    del who
    found = await _find(conn, job_id)
    number, position = paging.decode(cursor, tuple[paging.Number, paging.Number]) or (0, 0)
    rows = await results.links_mapped(
        conn, job_id=found.id, after_number=number, after_position=position, most=most + 1
    )
    following = paging.cut(rows, most, lambda row: (row.number, row.position))
    return Page(items=[Link.model_validate(row) for row in rows[:most]], next=following)


@router.get("/{job_id}/export", response_class=StreamingResponse)
async def export_job(
    request: Request,
    conn: Tenant,
    who: Reader,
    job_id: UUID,
    format_: Annotated[exports.ExportFormat, Query(alias="format")] = "jsonl",
) -> StreamingResponse:
    """Download the pages of a job: JSON lines, CSV, a zip of markdown files, or its visits as WARC."""
    del who
    found = await _find(conn, job_id)
    database: Database = request.app.state.database
    chosen = exports.Chosen(found.organisation_id, job_id=found.id)
    return exports.download(
        database, chosen, pagefiles.pages(database, found), format_, name=str(found.id)
    )
