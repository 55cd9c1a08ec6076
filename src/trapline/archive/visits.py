"""Visits: written once a command has ended, whatever its end, with every request on the way."""

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from trapline.archive.sql import visits as queries
from trapline.db.connection import Connection
from trapline.errors import ExitCode
from trapline.model import (
    AgentId,
    JobId,
    OrganisationId,
    RedirectSource,
    RequestTrace,
    SiteId,
    TaskId,
    UrlId,
    new_uuid,
)


class CrawlType(IntEnum):
    """What a visit was for. Numbers are stored: never reuse one."""

    PAGE = 1
    ROBOTS = 2
    SITEMAP = 3
    SCRAPE = 4
    IMPORT = 5
    RECRAWL = 6


class VisitRequest(Struct, frozen=True, gc=False):
    """One request of a visit, with the row of its URL."""

    url_id: UrlId
    trace: RequestTrace


class VisitRedirect(Struct, frozen=True, gc=False):
    """One redirect of a visit, with the rows of its URLs."""

    url_id: UrlId
    to_url_id: UrlId
    source: RedirectSource
    permanent: bool
    request: int | None


class VisitFile(Struct, frozen=True):
    """What a visit brought home."""

    url_id: UrlId
    size: int | None
    media_type: str
    last_modified: datetime | None = None
    canonical_url_id: UrlId | None = None
    charset: str | None = None
    headers: Sequence[tuple[str, str]] = ()
    sha256: bytes | None = None
    from_request: bool = True


class Visit(Struct, frozen=True):
    """One finished attempt at a URL."""

    organisation_id: OrganisationId
    site_id: SiteId
    url_id: UrlId
    crawl_type: CrawlType
    started_at: datetime
    took_ms: int
    exit_code: ExitCode
    message: str | None = None
    agent_id: AgentId | None = None
    job_id: JobId | None = None
    task_id: TaskId | None = None
    requests: Sequence[VisitRequest] = ()
    redirects: Sequence[VisitRedirect] = ()
    file: VisitFile | None = None
    uuid: UUID = msgspec.field(default_factory=new_uuid)


async def record(conn: Connection, visits: Sequence[Visit]) -> list[int]:
    """Write visits with all that belongs to them; return their ids in order."""
    if not visits:
        return []
    numbered = list(enumerate(visits, start=1))
    return await queries.record_visits(
        conn,
        visits=[_visit(visit) for visit in visits],
        requests=[_request(n, i, r) for n, v in numbered for i, r in enumerate(v.requests)],
        redirects=[_redirect(n, i, r, v) for n, v in numbered for i, r in enumerate(v.redirects)],
        files=[_file(n, v.file, v) for n, v in numbered if v.file is not None],
    )


def _visit(visit: Visit) -> tuple[Any, ...]:
    return (
        visit.organisation_id,
        visit.uuid,
        visit.agent_id,
        visit.job_id,
        visit.task_id,
        visit.site_id,
        visit.url_id,
        visit.crawl_type,
        visit.started_at,
        visit.took_ms,
        visit.exit_code,
        visit.message,
    )


def _request(visit: int, number: int, request: VisitRequest) -> tuple[Any, ...]:
    trace = request.trace
    return (
        visit,
        number,
        request.url_id,
        trace.sent_at,
        trace.total_ms,
        trace.dns_ms,
        trace.connect_ms,
        trace.tls_ms,
        trace.first_byte_ms,
        trace.robots_approved,
        trace.exit_code,
        trace.status,
        trace.etag,
        trace.last_modified,
        trace.remote_address,
    )


def _redirect(visit: int, number: int, redirect: VisitRedirect, of: Visit) -> tuple[Any, ...]:
    return (
        visit,
        number,
        redirect.request,
        redirect.url_id,
        redirect.to_url_id,
        redirect.source,
        redirect.permanent,
        redirect.source is RedirectSource.HSTS,
        None if redirect.request is None else of.requests[redirect.request].trace.last_modified,
    )


def _file(visit: int, file: VisitFile, of: Visit) -> tuple[Any, ...]:
    return (
        visit,
        len(of.requests) - 1 if file.from_request else None,
        file.url_id,
        file.last_modified,
        file.size,
        file.media_type,
        file.canonical_url_id,
        file.charset,
        _json(file.headers) if file.headers else None,
        file.sha256,
    )


def _json(value: object) -> str:
    """Return JSON that PostgreSQL takes: it has no place for a NUL character."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
