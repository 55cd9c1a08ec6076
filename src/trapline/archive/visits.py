"""Visits: written once a command has ended, whatever its end, with every request on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from uuid import UUID

import msgspec

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


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a visit, with the row of its URL."""

    url_id: UrlId
    trace: RequestTrace


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirect of a visit, with the rows of its URLs."""

    url_id: UrlId
    to_url_id: UrlId
    source: RedirectSource
    permanent: bool
    request: int | None


@dataclass(frozen=True, slots=True)
class File:
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


@dataclass(frozen=True, slots=True)
class Visit:
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
    requests: Sequence[Request] = ()
    redirects: Sequence[Redirect] = ()
    file: File | None = None
    uuid: UUID = field(default_factory=new_uuid)


async def record(conn: Connection, visits: Sequence[Visit]) -> list[int]:
    """Write visits with all that belongs to them; return their ids in order."""
    if not visits:
        return []
    ids = await _add_visits(conn, visits)
    pairs = list(zip(ids, visits, strict=True))
    await _add_requests(conn, pairs)
    await _add_redirects(conn, pairs)
    await _add_files(conn, pairs)
    return ids


async def _add_visits(conn: Connection, visits: Sequence[Visit]) -> list[int]:
    rows = await queries.add_visits(
        conn,
        organisation_ids=[v.organisation_id for v in visits],
        uuids=[v.uuid for v in visits],
        agent_ids=[v.agent_id for v in visits],
        job_ids=[v.job_id for v in visits],
        task_ids=[v.task_id for v in visits],
        site_ids=[v.site_id for v in visits],
        url_ids=[v.url_id for v in visits],
        crawl_types=[v.crawl_type for v in visits],
        started_ats=[v.started_at for v in visits],
        took_mss=[v.took_ms for v in visits],
        exit_codes=[v.exit_code for v in visits],
        messages=[v.message for v in visits],
    )
    by_uuid = {row.uuid: row.id for row in rows}
    return [by_uuid[v.uuid] for v in visits]


async def _add_requests(conn: Connection, visits: Sequence[tuple[int, Visit]]) -> None:
    rows = [
        (visit_id, visit, number, request.url_id, request.trace)
        for visit_id, visit in visits
        for number, request in enumerate(visit.requests)
    ]
    if rows:
        traces = [row[4] for row in rows]
        await queries.add_requests(
            conn,
            visit_ids=[row[0] for row in rows],
            started_ats=[row[1].started_at for row in rows],
            numbers=[row[2] for row in rows],
            organisation_ids=[row[1].organisation_id for row in rows],
            url_ids=[row[3] for row in rows],
            sent_ats=[t.sent_at for t in traces],
            total_mss=[t.total_ms for t in traces],
            dns_mss=[t.dns_ms for t in traces],
            connect_mss=[t.connect_ms for t in traces],
            tls_mss=[t.tls_ms for t in traces],
            first_byte_mss=[t.first_byte_ms for t in traces],
            robots_approveds=[t.robots_approved for t in traces],
            exit_codes=[t.exit_code for t in traces],
            statuses=[t.status for t in traces],
            etags=[t.etag for t in traces],
            last_modifieds=[t.last_modified for t in traces],
            remote_addresses=[t.remote_address for t in traces],
        )


async def _add_redirects(conn: Connection, visits: Sequence[tuple[int, Visit]]) -> None:
    rows = [
        (visit_id, visit, number, redirect)
        for visit_id, visit in visits
        for number, redirect in enumerate(visit.redirects)
    ]
    if rows:
        await queries.add_redirects(
            conn,
            visit_ids=[row[0] for row in rows],
            started_ats=[row[1].started_at for row in rows],
            numbers=[row[2] for row in rows],
            organisation_ids=[row[1].organisation_id for row in rows],
            request_numbers=[row[3].request for row in rows],
            url_ids=[row[3].url_id for row in rows],
            to_url_ids=[row[3].to_url_id for row in rows],
            sources=[row[3].source for row in rows],
            permanents=[row[3].permanent for row in rows],
            security_policies=[row[3].source is RedirectSource.HSTS for row in rows],
            last_modifieds=[_last_modified(row[1], row[3]) for row in rows],
        )


def _last_modified(visit: Visit, redirect: Redirect) -> datetime | None:
    return (
        None if redirect.request is None else visit.requests[redirect.request].trace.last_modified
    )


async def _add_files(conn: Connection, visits: Sequence[tuple[int, Visit]]) -> None:
    rows = [(visit_id, v, v.file) for visit_id, v in visits if v.file is not None]
    if not rows:
        return
    types = await _mimetypes(conn, {file.media_type for _, _, file in rows})
    await queries.add_files(
        conn,
        visit_ids=[visit_id for visit_id, _, _ in rows],
        started_ats=[v.started_at for _, v, _ in rows],
        organisation_ids=[v.organisation_id for _, v, _ in rows],
        request_numbers=[len(v.requests) - 1 if f.from_request else None for _, v, f in rows],
        url_ids=[f.url_id for _, _, f in rows],
        last_modifieds=[f.last_modified for _, _, f in rows],
        sizes=[f.size for _, _, f in rows],
        mimetype_ids=[types[f.media_type] for _, _, f in rows],
        canonical_url_ids=[f.canonical_url_id for _, _, f in rows],
        charsets=[f.charset for _, _, f in rows],
        headers=[_json(f.headers) if f.headers else None for _, _, f in rows],
        sha256s=[f.sha256 for _, _, f in rows],
    )


async def _mimetypes(conn: Connection, names: set[str]) -> dict[str, int]:
    found = await queries.find_mimetypes(conn, names=sorted(names))
    if len(found) < len(names):
        await queries.intern_mimetypes(conn, names=sorted(names))
        found = await queries.find_mimetypes(conn, names=sorted(names))
    return {row.name: row.id for row in found}


def _json(value: object) -> str:
    """Return JSON that PostgreSQL takes: it has no place for a NUL character."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
