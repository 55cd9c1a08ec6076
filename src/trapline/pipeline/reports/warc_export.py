"""WARC export of visits: request, response and metadata records, streamed in batches.

The archive stores a response with its headers and its decoded body, so Content-Encoding and
Transfer-Encoding, which no longer hold, are written under another name. Of a redirect it stores the
status and the target, of a request the URL and the user agent: their heads are rebuilt from these.
"""

import http
import platform
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import BinaryIO, Final
from uuid import UUID, uuid5

from trapline import __version__
from trapline.archive.warc.writer import (
    NewWarcRecord,
    RecordType,
    WarcWriter,
    fields,
    http_head,
    urn,
)
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode, NotFound
from trapline.frontier.canonical_url import split_url
from trapline.model import JobId, OrganisationId, SiteId, new_uuid
from trapline.pipeline.sql import warc as queries
from trapline.pipeline.sql.warc import ExportedVisit, RequestsOfRow
from trapline.store.blobs import BlobStore

_AT_ONCE: Final = 50
_STALE_HEADERS: Final = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_NOT_MODIFIED_PROFILE: Final = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)


async def write_warc(  # noqa: PLR0913 (the source, the target and the filters)
    database: Database,
    blobs: BlobStore,
    organisation_id: OrganisationId,
    file: BinaryIO,
    *,
    job_id: JobId | None = None,
    site_id: SiteId | None = None,
) -> WarcWriter:
    """Write the visits of a job, of a site, or all; return the writer with its counts."""
    info = new_uuid()
    writer = WarcWriter(file, info)
    writer.write(_warcinfo(info, database.settings.fetch.user_agent))
    async for visits in _visits(database, organisation_id, job_id, site_id):
        async with database.tenant_tx(organisation_id) as conn:
            rows = await queries.requests_of(
                conn,
                started_ats=[visit.started_at for visit in visits],
                visit_ids=[visit.id for visit in visits],
            )
        requests: defaultdict[int, list[RequestsOfRow]] = defaultdict(list)
        for row in rows:
            requests[row.visit_id].append(row)
        for visit in visits:
            body = await _body(database, blobs, organisation_id, visit)
            for record in _records(visit, requests[visit.id], body):
                writer.write(record)
    return writer


async def find_site(conn: Connection, named: str) -> SiteId:
    """Return a site by its id, name or address, with or without the final slash."""
    site_id = await queries.site_named(conn, named=named.rstrip("/"))
    if site_id is None:
        raise NotFound(f"There is no site {named}.")
    return site_id


async def _visits(
    database: Database,
    organisation_id: OrganisationId,
    job_id: JobId | None,
    site_id: SiteId | None,
) -> AsyncIterator[list[ExportedVisit]]:
    at, after = _BEGINNING, 0
    while True:
        async with database.tenant_tx(organisation_id) as conn:
            if job_id is not None:
                rows = await queries.visits_of_job(conn, job_id=job_id, after=after, most=_AT_ONCE)
            else:
                rows = await queries.visits_in_order(
                    conn, site_id=site_id, after_at=at, after=after, most=_AT_ONCE
                )
        if rows:
            yield rows
            at, after = rows[-1].started_at, rows[-1].id
        if len(rows) < _AT_ONCE:
            return


async def _body(
    database: Database, blobs: BlobStore, organisation_id: OrganisationId, visit: ExportedVisit
) -> bytes | None:
    """Return the bytes of a visit's file; None if they were deleted."""
    if visit.sha256 is None:
        return None
    try:
        async with database.tenant_tx(organisation_id) as conn:
            return await blobs.get(conn, visit.sha256)
    except NotFound:
        return None


def _records(
    visit: ExportedVisit, requests: Sequence[RequestsOfRow], body: bytes | None
) -> Iterator[NewWarcRecord]:
    written: list[UUID] = []
    for request in requests:
        answer = _response(visit, request, body)
        if answer is not None:
            written.append(answer.id)
            yield answer
            yield _request(visit, request, answer.id)
    if body is not None and visit.file_request is None:
        answer = _imported_response(visit, body)
        written.append(answer.id)
        yield answer
    yield _metadata(visit, requests, written)


def _response(
    visit: ExportedVisit, request: RequestsOfRow, body: bytes | None
) -> NewWarcRecord | None:
    more = (("WARC-IP-Address", request.remote_address),) if request.remote_address else ()
    kind, payload = RecordType.RESPONSE, b""
    if request.redirected_to is not None:
        head = http_head(_status(request.status), [("Location", request.redirected_to)])
    elif request.exit_code == ExitCode.NOT_MODIFIED:
        kind, more = RecordType.REVISIT, (*more, ("WARC-Profile", _NOT_MODIFIED_PROFILE))
        head = http_head(_status(request.status), _validators(request))
    elif body is not None and request.number == visit.file_request:
        head, payload = http_head(_status(request.status), _headers(visit, body)), body
    else:
        return None
    identifier = uuid5(visit.uuid, f"{request.number} answer")
    return NewWarcRecord(
        kind, identifier, request.sent_at, head + payload, request.url, payload, more
    )


def _imported_response(visit: ExportedVisit, body: bytes) -> NewWarcRecord:
    """Return the response record of a visit that was imported, and so has no request."""
    head = http_head(_status(http.HTTPStatus.OK), _headers(visit, body))
    identifier = uuid5(visit.uuid, "answer")
    url = visit.file_url or visit.url
    return NewWarcRecord(RecordType.RESPONSE, identifier, visit.started_at, head + body, url, body)


def _headers(visit: ExportedVisit, body: bytes) -> Iterator[tuple[str, str]]:
    for name, value in visit.headers or [("Content-Type", visit.media_type or "")]:
        if name.lower() in _STALE_HEADERS:
            yield f"X-Archive-Orig-{name}", value
        else:
            yield name, value
    yield "Content-Length", str(len(body))


def _validators(request: RequestsOfRow) -> Iterator[tuple[str, str]]:
    if request.etag is not None:
        yield "ETag", request.etag
    if request.last_modified is not None:
        yield "Last-Modified", format_datetime(request.last_modified.astimezone(UTC), usegmt=True)


def _request(visit: ExportedVisit, request: RequestsOfRow, answer: UUID) -> NewWarcRecord:
    _, host, path = split_url(request.url)
    headers = [("Host", host)]
    if visit.user_agent:
        headers.append(("User-Agent", visit.user_agent))
    return NewWarcRecord(
        RecordType.REQUEST,
        uuid5(visit.uuid, f"{request.number} request"),
        request.sent_at,
        http_head(f"GET {path} HTTP/1.1", headers),
        request.url,
        more=(("WARC-Concurrent-To", urn(answer)),),
    )


def _metadata(
    visit: ExportedVisit, requests: Sequence[RequestsOfRow], written: Sequence[UUID]
) -> NewWarcRecord:
    values: list[tuple[str, object]] = [
        ("visit", visit.uuid),
        ("exit-code", f"{visit.exit_code} {ExitCode(visit.exit_code).name.lower()}"),
        ("fetchTimeMs", visit.took_ms),
    ]
    optional = (("message", visit.message), ("agent", visit.agent), ("job", visit.job_id))
    values += [(name, value) for name, value in optional if value is not None]
    values += [("request", _request_line(request)) for request in requests]
    return NewWarcRecord(
        RecordType.METADATA,
        uuid5(visit.uuid, "metadata"),
        visit.started_at,
        fields(values),
        visit.url,
        more=tuple(("WARC-Concurrent-To", urn(identifier)) for identifier in written),
    )


def _request_line(request: RequestsOfRow) -> str:
    """Describe the outcome and the times of one request in a line."""
    times = {
        "dns": request.dns_ms,
        "connect": request.connect_ms,
        "tls": request.tls_ms,
        "first-byte": request.first_byte_ms,
        "total": request.total_ms,
    }
    parts = [request.url, f"exit-code={request.exit_code}", f"status={request.status}"]
    parts += [f"{name}-ms={value:.3f}" for name, value in times.items() if value is not None]
    parts.append("robots=approved" if request.robots_approved else "robots=overruled")
    return " ".join(parts)


def _status(status: int | None) -> str:
    try:
        phrase = http.HTTPStatus(status or 0).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status or 200} {phrase}".rstrip()


def _warcinfo(identifier: UUID, user_agent: str) -> NewWarcRecord:
    block = fields(
        [
            ("software", f"Trapline/{__version__} Python/{platform.python_version()}"),
            ("format", "WARC File Format 1.1"),
            ("http-header-user-agent", user_agent),
            ("robots", "RFC 9309"),
        ]
    )
    return NewWarcRecord(RecordType.WARCINFO, identifier, datetime.now(UTC), block)
