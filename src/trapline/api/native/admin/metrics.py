"""`/api/metrics`: durations of requests and of document operations."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict

from trapline.api import pagination
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant
from trapline.db.keyset import EARLIEST, LAST_ROW, Order
from trapline.measure.sql import queries
from trapline.model import JobId
from trapline.queue import jobs

router = APIRouter(prefix="/api/metrics", tags=["metrics"])

_OPERATIONS: Order[Any] = Order(
    queries.operations_before, ("at", "id"), lambda row: (row.recorded_at, row.id), LAST_ROW
)
_OPERATIONS_OF_JOB = replace(_OPERATIONS, query=queries.operations_of_job)
_REQUESTS = replace(_OPERATIONS, query=queries.requests_before)
Since = Annotated[AwareDatetime | None, Query(description="At this time or later.")]


class OperationSeen(BaseModel):
    """One thing that was done to a document, or to a batch of them."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "id": 4711,
                "recorded_at": "2026-11-15T10:00:00Z",
                "type": "embedding",
                "name": "static",
                "milliseconds": 3.25,
                "error": None,
                "request_id": None,
                "job_id": "0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10",
                "task_id": 815,
                "document_url": "https://example.com/a",
                "extra": {"texts": 12},
            }
        },
    )

    id: int
    recorded_at: datetime
    type: str
    name: str
    milliseconds: float
    error: str | None
    request_id: UUID | None
    job_id: UUID | None
    task_id: int | None
    document_url: str | None
    extra: dict[str, Any] | None


class RequestSeen(BaseModel):
    """One request that was answered."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "id": 4711,
                "recorded_at": "2026-11-15T10:00:00Z",
                "method": "POST",
                "path": "/v2/scrape",
                "route": "/v2/scrape",
                "status": 200,
                "milliseconds": 81.5,
                "request_id": "7f0dd1f2-95ff-4a2c-8a5b-0c6d5a6c2c11",
                "client": "127.0.0.1",
                "user_agent": "firecrawl-py/4.53",
            }
        },
    )

    id: int
    recorded_at: datetime
    method: str
    path: str
    route: str
    status: int
    milliseconds: float
    request_id: UUID
    client: str | None
    user_agent: str | None


class JobTime(BaseModel):
    """What a job's operations of one type took together."""

    model_config = ConfigDict(from_attributes=True)

    type: str
    operations: int
    failures: int
    milliseconds: float


@router.get("/operations")
async def list_operations(
    conn: Tenant,
    principal: Reader,
    job_id: UUID | None = None,
    kind: Annotated[str | None, Query(alias="type", max_length=50, pattern=r"^[^\x00]*$")] = None,
    failed: Annotated[bool, Query(description="Only those that failed.")] = False,
    since: Since = None,
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[OperationSeen]:
    """List operations, latest first: of one job, or of all."""
    filters: dict[str, Any] = {"since": _begin(since), "kind": kind, "failed": failed}
    if job_id is not None:
        order, filters["job_id"] = _OPERATIONS_OF_JOB, JobId(job_id)
    else:
        order, filters["organisation_id"] = _OPERATIONS, principal.organisation_id
    rows, following = await pagination.read_order(conn, order, filters, cursor, most)
    return Page(items=[OperationSeen.model_validate(row) for row in rows], next=following)


@router.get("/requests")
async def list_requests(
    conn: Tenant,
    principal: Reader,
    status: Annotated[int | None, Query(ge=100, le=599)] = None,
    since: Since = None,
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[RequestSeen]:
    """List the requests of this organisation, latest first. They are seen a few seconds later."""
    filters = {
        "organisation_id": principal.organisation_id,
        "since": _begin(since),
        "status": status,
    }
    rows, following = await pagination.read_order(conn, _REQUESTS, filters, cursor, most)
    return Page(items=[RequestSeen.model_validate(row) for row in rows], next=following)


@router.get("/jobs/{job_id}")
async def times_of_job(job_id: UUID, conn: Tenant, principal: Reader) -> list[JobTime]:
    """Say what a job's operations took together: chunking, embedding, vector, bm25, and others."""
    del principal
    job = await jobs.get(conn, JobId(job_id))
    return [JobTime.model_validate(row) for row in await queries.times_of_job(conn, job_id=job.id)]


def _begin(since: datetime | None) -> datetime:
    return EARLIEST if since is None else max(since, EARLIEST)
