"""`/api/logs`: what the steps of jobs had to say."""

from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict

from trapline.api import paging
from trapline.api.access import Reader, Tenant
from trapline.api.paging import Cursor, Most, Page
from trapline.model import JobId
from trapline.queue import jobs, listing
from trapline.queue.sql import logbook as queries

router = APIRouter(prefix="/api/logs", tags=["logs"])

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_LAST = (listing.NEVER, 2**63 - 1)


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
                "message": "The server asks to come less often (429).",
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
    who: Reader,
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
    at, after = paging.decode(cursor, tuple[paging.Moment, paging.Number]) or _LAST
    begin = listing.EVER if since is None else max(since, listing.EVER)
    if job_id is not None:
        job = await jobs.get(conn, JobId(job_id))
        rows = await queries.log_of_job(
            conn,
            job_id=job.id,
            at=at,
            id=after,
            since=begin,
            levels=_and_above(level),
            step=step,
            most=most + 1,
        )
    else:
        rows = await queries.log_lines(
            conn,
            organisation_id=who.organisation_id,
            at=at,
            id=after,
            since=begin,
            site=site_id,
            trace=trace_id,
            levels=_and_above(level),
            step=step,
            most=most + 1,
        )
    following = paging.cut(rows, most, lambda row: (row.created_at, row.id))
    return Page(items=[LogLine.model_validate(row) for row in rows[:most]], next=following)


def _and_above(level: LogLevel | None) -> list[str] | None:
    levels = list(get_args(LogLevel))
    return None if level is None else levels[levels.index(level) :]
