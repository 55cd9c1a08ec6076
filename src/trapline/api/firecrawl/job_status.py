"""The status of a crawl or batch: its counts, and its documents a page at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from fastapi import Depends, Query
from starlette.requests import HTTPConnection

from trapline.db.connection import Connection
from trapline.deliver.firecrawl_document import iso_time
from trapline.pipeline.reports import job_document, job_results
from trapline.pipeline.reports.job_results import JobResults, PageCounts
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow

PAGE: Final = 100
MOST_PAGE: Final = 1000
MOST_BYTES: Final = 10 * 2**20
_STATUSES: Final = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}
_ROBOTS: Final = (
    "Some pages were left out because robots.txt forbids them; the crawl's errors name them."
)
_ONE_PAGE: Final = (
    "Only one page or none was found. The crawl went below the path of its URL alone: set"
    " crawlEntireDomain to true, or start at the site's root, to find more."
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page of results begins. `after` is the event that told of the last document given;
    without it, `skip` documents are passed over.
    """

    skip: int = 0
    after: int | None = None
    limit: int | None = None

    def next(self, url: str, count: int, last: int) -> str:
        query: dict[str, int] = {"skip": self.skip + count, "after": last}
        if self.limit is not None:
            query["limit"] = self.limit
        return f"{url}?{urlencode(query)}"


async def _cursor(
    skip: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int | None, Query(ge=1, le=MOST_PAGE)] = None,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Cursor:
    return Cursor(skip, after, limit)


PageCursor = Annotated[Cursor, Depends(_cursor)]


def head(job: JobRow, counts: PageCounts) -> dict[str, Any]:
    """Build the part of a status that comes from counters."""
    ended = job.status in jobs.ENDED
    body: dict[str, Any] = {
        "success": True,
        "status": _STATUSES.get(job.status, "scraping"),
        "completed": counts.completed,
        "total": counts.completed + counts.remaining,
        "creditsUsed": counts.completed,
        "expiresAt": iso_time(job.expires_at or datetime.now(UTC) + job.ttl),
        "createdAt": iso_time(job.created_at),
    }
    if ended and job.finished_at is not None:
        body["completedAt"] = iso_time(job.finished_at)
        body["duration"] = round((job.finished_at - job.created_at).total_seconds(), 3)
        warning = _warning(job, counts)
        if warning is not None:
            body["warning"] = warning
    return body


async def page(
    results: JobResults, job: JobRow, counts: PageCounts, cursor: Cursor, url: str | None
) -> tuple[bytes, int]:
    """Return the body of a status with its documents, and the number of the last event in it.

    It ends early once its documents pass ten megabytes; a single larger one is given whole.
    """
    most = cursor.limit or PAGE
    parts: list[bytes] = []
    size, last, more = 0, cursor.after or 0, False
    skip = 0 if cursor.after is not None else cursor.skip
    async for result in results.pages(job, after=last, skip=skip, most=most + 1):
        encoded = job_document.encode(result, job)
        if len(parts) == most or (parts and size + len(encoded) > MOST_BYTES):
            more = True
            break
        parts.append(encoded)
        size, last = size + len(encoded), result.number
    body = head(job, counts)
    # A cursor on an empty page would have clients ask again at once, for as long as the job runs.
    if url is not None and parts and (more or job.status not in jobs.ENDED):
        body["next"] = cursor.next(url, len(parts), last)
    written = msgspec.json.encode(body)[:-1]
    return b"".join((written, b',"data":[', b",".join(parts), b"]}")), last


def base(connection: HTTPConnection) -> str:
    """Return the scheme and host that the client itself used."""
    url = connection.url
    scheme = {"ws": "http", "wss": "https"}.get(url.scheme, url.scheme)
    forwarded = connection.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    if forwarded in {"http", "https"}:
        scheme = forwarded
    return f"{scheme}://{url.netloc}"


def _warning(job: JobRow, counts: PageCounts) -> str | None:
    if job.kind != "crawl" or job.status != "completed":
        return None
    options, sentences = job.options, [_ROBOTS] if counts.robots_blocked else []
    path = str(options.get("url", "")).partition("://")[2].partition("/")[2]
    if counts.completed <= 1 and path and not options.get("entire_domain"):
        sentences.append(_ONE_PAGE)
    return " ".join(sentences) or None


async def errors(conn: Connection, job: JobRow) -> dict[str, Any]:
    """Build the list of a job's failed pages."""
    rows = await job_results.failures(conn, job.id)
    return {
        "errors": [
            {
                "id": str(row.task_id),
                "timestamp": iso_time(row.failed_at),
                "url": row.url,
                "error": row.error,
            }
            | ({} if row.code is None else _code(row.code))
            for row in rows
        ],
        "robotsBlocked": await job_results.robots_blocked(conn, job.id),
    }


def _code(code: int) -> dict[str, str]:
    named = job_results.firecrawl_code(code)
    return {} if named is None else {"code": named}
