"""`/api/logs`: the log lines of jobs."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict

from trapline.api import pagination
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant
from trapline.db.keyset import EARLIEST, LAST_ROW, Order
from trapline.model import JobId
from trapline.queue import jobs
from trapline.queue.sql import job_log as queries

router = APIRouter(prefix="/api/logs", tags=["logs"])

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_LINES_OF_JOB: Order[Any] = Order(
    queries.log_of_job, ("at", "id"), lambda row: (row.created_at, row.id), LAST_ROW
)
_ALL_LINES: Order[Any] = replace(_LINES_OF_JOB, query=queries.log_lines)


class LogLine(BaseModel):
    """One line of a job's log."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "id": 4711,
                "job_id": "0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10",
                "site_id": None,
                "step": "fetch",
                "level": "WARNING",
                "message": "The server asks for fewer requests (429).",
                "context": {"url": "https://example.com/a"},
                "trace_id": None,
                "created_at": "2026-11-15T10:00:00Z",
            }
        },
    )

    id: int
    job_id: UUID
    site_id: UUID | None
    step: str
    level: LogLevel
    message: str
    context: dict[str, Any]
    trace_id: UUID | None
    created_at: datetime


@router.get("")
async def list_logs(
    conn: Tenant,
    principal: Reader,
    job_id: UUID | None = None,
    site_id: UUID | None = None,
    trace_id: UUID | None = None,
    level: Annotated[LogLevel | None, Query(description="Lines of this level and above.")] = None,
    step: Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")] = None,
    since: Annotated[AwareDatetime | None, Query(description="At this time or later.")] = None,
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[LogLine]:
    """List log lines, latest first: of one job, or of all."""
    filters: dict[str, Any] = {
        "since": EARLIEST if since is None else max(since, EARLIEST),
        "levels": _and_above(level),
        "step": step,
    }
    if job_id is not None:
        filters["job_id"] = (await jobs.get(conn, JobId(job_id))).id
    else:
        filters |= {"organisation_id": principal.organisation_id}
        filters |= {"site": site_id, "trace": trace_id}
    order = _ALL_LINES if job_id is None else _LINES_OF_JOB
    rows, following = await pagination.read_order(conn, order, filters, cursor, most)
    return Page(items=[LogLine.model_validate(row) for row in rows], next=following)


def _and_above(level: LogLevel | None) -> list[str] | None:
    levels = list(get_args(LogLevel))
    return None if level is None else levels[levels.index(level) :]
