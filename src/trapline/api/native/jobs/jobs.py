"""`/api/jobs`: jobs, their progress and their results."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from msgspec.structs import asdict
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.native.jobs import exports
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant, Writer, actor_name
from trapline.db.connection import Connection
from trapline.db.keyset import EARLIEST, FIRST_NUMBER, LATEST, Number, Order, Start
from trapline.db.pool import Database
from trapline.db.tenancy import Principal
from trapline.model import JobId, SiteId
from trapline.pipeline import job_templates
from trapline.pipeline.ingest import source_operations
from trapline.pipeline.job_templates import JobRequest
from trapline.pipeline.reports import page_export
from trapline.pipeline.reports.job_results import count_pages as counts_of_pages
from trapline.pipeline.sql import job_results
from trapline.queue import daily_quota, job_list, jobs, why
from trapline.queue.jobs import Status
from trapline.queue.sql import jobs as queries
from trapline.queue.sql import statistics
from trapline.queue.sql import tasks as task_queries
from trapline.queue.sql.jobs import JobRow

router = APIRouter(prefix="/api/jobs", tags=["jobs"])

_EXAMPLE_ID = "0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10"
_ONE_HOUR = timedelta(hours=1)
_LONGEST_SPAN = timedelta(days=400)
_TASKS = Order(task_queries.list_tasks, ("after",), lambda row: row.id, FIRST_NUMBER)
_ERRORS = Order(queries.errors_of_job, ("after",), lambda row: row.task_id, FIRST_NUMBER)
_LINKS = Order(
    job_results.links_mapped,
    ("after_number", "after_position"),
    lambda row: (row.number, row.position),
    Start((0, 0), tuple[Number, Number]),
)


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
    urls: Annotated[list[str] | None, Field(max_length=job_templates.MAX_URLS)] = None
    options: dict[str, Any] = {}
    site_id: UUID | None = None
    priority: Annotated[int, Field(ge=1, le=10, description="Higher runs first.")] = 5
    metadata: dict[str, Any] = {}

    def order(self, principal: Principal) -> JobRequest:
        pages = {"url": self.url, "urls": self.urls}
        urls = {name: value for name, value in pages.items() if value is not None}
        return JobRequest(
            principal.organisation_id,
            {"kind": self.kind, "options": self.options} | urls,
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
    principal: Reader,
    status: Status | None = None,
    kind: Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")] = None,
    since: Since = None,
    until: Until = None,
    sort: job_list.Sort = "newest",
    cursor: Cursor = None,
    most: Most = 50,
) -> Page[Job]:
    """List jobs."""
    selected = job_list.jobs_of(
        principal.organisation_id, status=status, kind=kind, since=since, until=until
    )
    rows, following = await pagination.read_page(conn, selected, sort, cursor, most)
    return Page(items=[Job.of(row) for row in rows], next=following)


@router.post("", status_code=201)
async def create_job(conn: Tenant, principal: Writer, new: NewJob) -> Job:
    """Start a job; it runs as soon as a worker is there."""
    return Job.of(await jobs.get(conn, await job_templates.create_job(conn, new.order(principal))))


@router.get("/counts")
async def count_jobs(
    conn: Tenant, principal: Reader, since: Since = None, until: Until = None
) -> list[JobCount]:
    """Count jobs by kind and state, made within whole hours."""
    begin, end = job_list.within(since, until)
    rows = await statistics.count_jobs(
        conn, organisation_id=principal.organisation_id, since=begin, until=end
    )
    return [JobCount.model_validate(row) for row in rows]


@router.get("/hours")
async def jobs_by_hour(
    conn: Tenant, principal: Reader, since: Since = None, until: Until = None
) -> list[JobHour]:
    """Count jobs by the hour they were made in: the last day, if not said otherwise."""
    end = min(until or datetime.now(UTC) + _ONE_HOUR, LATEST)
    begin = max(since or end - timedelta(days=1), end - _LONGEST_SPAN, EARLIEST)
    rows = await statistics.jobs_by_hour(
        conn, organisation_id=principal.organisation_id, since=begin, until=end
    )
    return [JobHour.model_validate(row) for row in rows]


async def _find(conn: Connection, job_id: UUID) -> JobRow:
    return await job_list.find(conn, JobId(job_id), now=datetime.now(UTC))


@router.get("/{job_id}")
async def get_job(conn: Tenant, principal: Reader, job_id: UUID) -> ShownJob:
    """Show a job."""
    del principal
    job = Job.of(await _find(conn, job_id))
    pages = PageCounts.model_validate(await counts_of_pages(conn, JobId(job_id)))
    return ShownJob(**job.model_dump(), pages=pages)


@router.delete("/{job_id}", status_code=204)
async def delete_job(conn: Tenant, principal: Writer, job_id: UUID) -> None:
    """Delete an ended job with its tasks and results; the pages that it stored stay."""
    del principal
    await job_list.delete(conn, (await _find(conn, job_id)).id)


@router.post("/{job_id}/cancel")
async def cancel_job(
    conn: Tenant, principal: Writer, job_id: UUID, body: Reason | None = None
) -> Job:
    """End a job: queued tasks at once, running ones within seconds."""
    job = await _find(conn, job_id)
    await jobs.cancel(
        conn, job.id, by=actor_name(principal), reason=None if body is None else body.reason
    )
    return Job.of(await jobs.get(conn, job.id))


@router.post("/{job_id}/pause")
async def pause_job(conn: Tenant, principal: Writer, job_id: UUID) -> Job:
    """Let no more tasks start."""
    job = await _find(conn, job_id)
    await jobs.pause(conn, job.id, by=actor_name(principal))
    return Job.of(await jobs.get(conn, job.id))


@router.post("/{job_id}/resume")
async def resume_job(conn: Tenant, principal: Writer, job_id: UUID) -> Job:
    """Resume a paused job."""
    job = await _find(conn, job_id)
    await jobs.resume(conn, job.id, by=actor_name(principal))
    return Job.of(await jobs.get(conn, job.id))


@router.post("/{job_id}/retry", status_code=201)
async def retry_job(conn: Tenant, principal: Writer, job_id: UUID) -> Job:
    """Run a job's failed tasks again, in a new job that names the old one."""
    now = datetime.now(UTC)
    await daily_quota.require_pages(conn, principal.organisation_id, now=now)
    job = await _find(conn, job_id)
    again = await source_operations.retry(conn, job.id, by=actor_name(principal))
    return Job.of(await jobs.get(conn, again))


@router.get("/{job_id}/why")
async def why_job(conn: Tenant, principal: Reader, job_id: UUID) -> Explanation:
    """Say what a job's next task waits for."""
    del principal
    job = await _find(conn, job_id)
    return Explanation(why=await why.why_job(conn, job.id, now=datetime.now(UTC)))


@router.get("/{job_id}/tasks")
async def list_tasks(
    conn: Tenant, principal: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[JobTask]:
    """List a job's tasks in the order in which they were added."""
    del principal
    job = await _find(conn, job_id)
    filters = {"job_id": job.id}
    rows, following = await pagination.read_order(conn, _TASKS, filters, cursor, most)
    return Page(items=[JobTask.model_validate(row) for row in rows], next=following)


@router.get("/{job_id}/errors")
async def list_errors(
    conn: Tenant, principal: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[JobError]:
    """List a job's tasks that failed for good."""
    del principal
    job = await _find(conn, job_id)
    filters = {"job_id": job.id}
    rows, following = await pagination.read_order(conn, _ERRORS, filters, cursor, most)
    return Page(items=[JobError.model_validate(row) for row in rows], next=following)


@router.get("/{job_id}/links")
async def list_links(
    conn: Tenant, principal: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[Link]:
    """List the URLs that a map found, in the order in which it found them."""
    del principal
    job = await _find(conn, job_id)
    filters = {"job_id": job.id}
    rows, following = await pagination.read_order(conn, _LINKS, filters, cursor, most)
    return Page(items=[Link.model_validate(row) for row in rows], next=following)


@router.get("/{job_id}/export", response_class=StreamingResponse)
async def export_job(
    request: Request,
    conn: Tenant,
    principal: Reader,
    job_id: UUID,
    format_: Annotated[exports.ExportFormat, Query(alias="format")] = "jsonl",
) -> StreamingResponse:
    """Download the pages of a job: JSON lines, CSV, a zip of markdown files, or its visits as WARC."""
    del principal
    job = await _find(conn, job_id)
    database: Database = request.app.state.database
    chosen = exports.Chosen(job.organisation_id, job_id=job.id)
    return exports.download(
        database, chosen, page_export.pages_of_job(database, job), format_, name=str(job.id)
    )
