"""WARC import: records become visits, files and pages, without requests of ours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

from trapline.archive import visits as archive
from trapline.archive.visits import CrawlType, Visit, VisitFile
from trapline.archive.warc.http_response import HttpResponse, parse_response
from trapline.archive.warc.reader import CONTENT, WarcRecord, check_digest, read_records
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode, InvalidInput, VisitFailed
from trapline.fetch.content_coding import decoder_for
from trapline.fetch.headers import http_date
from trapline.fetch.sniff import media_type, sniff
from trapline.frontier import canonical, url_rows
from trapline.frontier.canonical_url import origin_of
from trapline.frontier.sql import candidates
from trapline.frontier.url_rows import OwnedUrl
from trapline.model import Document, ExtractOptions, Fetched, OrganisationId, SiteId, UrlId
from trapline.pipeline import document_formats
from trapline.pipeline.crawl.store_visits import content_of
from trapline.pipeline.sql import warc as queries
from trapline.store import blobs as packing
from trapline.store import pages, sites
from trapline.store.blobs import BlobStore, PackedBlob
from trapline.store.pages import PageChange, Sighting

_AT_ONCE: Final = 50
_BYTES_AT_ONCE: Final = 16 << 20
_REPORTED: Final = 20
_SITES_REMEMBERED: Final = 10_000
_SUCCESS: Final = 2
_USUAL: Final = frozenset({"warcinfo", "request", "metadata", "revisit", "conversion"})


@dataclass(slots=True)
class ImportReport:
    """The result of an import; `skipped` counts the records that are no pages, by reason."""

    records: int = 0
    pages: int = 0
    versions: int = 0
    older: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    error: str | None = None

    def skip(self, why: str) -> None:
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def add_problem(self, what: str, problem: str) -> None:
        self.skip("cannot be read")
        if len(self.problems) < _REPORTED:
            self.problems.append(f"{what}: {problem}")


@dataclass(frozen=True, slots=True)
class _Page:
    """A page to be stored."""

    fetched: Fetched
    at: datetime
    document: Document
    packed: PackedBlob
    site_id: SiteId


@dataclass(slots=True)
class WarcImporter:
    """Imports files for one organisation."""

    database: Database
    blobs: BlobStore
    organisation_id: OrganisationId
    _sites: dict[str, SiteId] = field(default_factory=dict)

    async def run(self, path: Path) -> ImportReport:
        """Import a file; pages before an unreadable part are stored."""
        report = ImportReport()
        batch: dict[str, _Page] = {}
        size = 0
        with path.open("rb") as file:
            try:
                for fetched, at in self._responses(file, report):
                    if fetched.url in batch or len(batch) == _AT_ONCE or size > _BYTES_AT_ONCE:
                        await self._store(list(batch.values()), report)
                        batch, size = {}, 0
                    page = await self._read(fetched, at, report)
                    if page is not None:
                        batch[fetched.url] = page
                        size += len(fetched.body)
            except InvalidInput as error:
                report.error = error.message
        await self._store(list(batch.values()), report)
        return report

    def _responses(
        self, file: BinaryIO, report: ImportReport
    ) -> Iterator[tuple[Fetched, datetime]]:
        """Yield the responses that have content; count the other records."""
        most = self.database.settings.fetch.decompressed_bytes
        for record in read_records(file, most):
            report.records += 1
            if record.type not in CONTENT:
                report.skip(record.type if record.type in _USUAL else "of another type")
                continue
            try:
                answer = _answer(record, most)
                if answer.status // 100 != _SUCCESS:
                    report.skip(f"status {answer.status}")
                    continue
                yield _fetched(record, answer, most), record.date
            except (InvalidInput, VisitFailed) as error:
                report.add_problem(f"record {record.number}", error.message)

    async def _read(self, fetched: Fetched, at: datetime, report: ImportReport) -> _Page | None:
        try:
            document = await document_formats.extract_document(fetched, ExtractOptions())
        except VisitFailed as error:
            report.add_problem(fetched.url, error.message)
            return None
        site_id = await self._site(origin_of(fetched.url))
        return _Page(fetched, at, document, packing.pack(fetched.body), site_id)

    async def _site(self, origin: str) -> SiteId:
        site_id = self._sites.get(origin)
        if site_id is None:
            async with self.database.system_tx() as conn:
                site_id = await sites.get_or_create_implicit(conn, self.organisation_id, origin)
            if len(self._sites) >= _SITES_REMEMBERED:
                self._sites.clear()
            self._sites[origin] = site_id
        return site_id

    async def _store(self, batch: Sequence[_Page], report: ImportReport) -> None:
        """Store a batch in one transaction: visits, files, and versions that are newer than the stored."""
        if not batch:
            return
        async with self.database.system_tx() as conn:
            ids = await url_rows.intern(
                conn, {(self.organisation_id, p.fetched.url) for p in batch}
            )
            await self.blobs.put(conn, (page.packed for page in batch))
            visits = [self._visit(page, ids) for page in batch]
            visit_ids = await archive.record(conn, visits)
            await self._discover(conn, visits)
            older = await self._older(conn, visits)
            sightings = [
                self._sighting(page, visit, visit_id)
                for page, visit, visit_id in zip(batch, visits, visit_ids, strict=True)
                if (visit.site_id, visit.url_id) not in older
            ]
            recorded = await pages.record(conn, sightings)
        report.pages += len(batch)
        report.older += len(batch) - len(sightings)
        report.versions += sum(one.change is not PageChange.SAME for one in recorded)

    def _visit(self, page: _Page, ids: dict[OwnedUrl, UrlId]) -> Visit:
        fetched = page.fetched
        url_id = ids[self.organisation_id, fetched.url]
        return Visit(
            self.organisation_id,
            page.site_id,
            url_id,
            CrawlType.IMPORT,
            page.at,
            0,
            ExitCode.CONTENT,
            file=VisitFile(
                url_id,
                len(fetched.body),
                fetched.media_type or "application/octet-stream",
                last_modified=http_date(fetched.header("Last-Modified")),
                headers=fetched.headers,
                sha256=page.packed.sha256,
                from_request=False,
            ),
        )

    def _sighting(self, page: _Page, visit: Visit, visit_id: int) -> Sighting:
        return Sighting(
            self.organisation_id,
            page.site_id,
            visit.url_id,
            visit_id,
            None,
            page.at,
            page.fetched.status,
            content_of(page.document, page.packed),
        )

    async def _discover(self, conn: Connection, visits: Sequence[Visit]) -> None:
        await candidates.discover_candidates(
            conn,
            site_ids=[visit.site_id for visit in visits],
            url_ids=[visit.url_id for visit in visits],
            organisation_ids=[visit.organisation_id for visit in visits],
        )

    async def _older(self, conn: Connection, visits: Sequence[Visit]) -> set[tuple[SiteId, UrlId]]:
        """Return the pages that were seen after this record: it does not change them."""
        rows = await queries.seen_since(
            conn,
            site_ids=[visit.site_id for visit in visits],
            url_ids=[visit.url_id for visit in visits],
            ats=[visit.started_at for visit in visits],
        )
        return {(row.site_id, row.url_id) for row in rows}


def _answer(record: WarcRecord, most: int) -> HttpResponse:
    if record.block is None:
        raise InvalidInput(f"It has {record.length:,} bytes, and {most:,} are the most.")
    check_digest(record)
    if record.type == "resource":
        headers = (("Content-Type", record.headers.get("content-type", "")),)
        return HttpResponse(200, headers, record.block)
    return parse_response(record.block)


def _fetched(record: WarcRecord, answer: HttpResponse, most: int) -> Fetched:
    """Return a recorded response as a fetched one."""
    url = canonical(record.url or "")
    body = answer.body
    decoder = decoder_for(answer.header("content-encoding"), most)
    if decoder is not None:
        body = decoder.decode(body)
        decoder.finish()
    said = answer.header("content-type")
    return Fetched(
        exit_code=ExitCode.CONTENT,
        message="",
        url=url,
        status=answer.status,
        headers=answer.headers,
        body=body,
        content_type=said,
        media_type=media_type(said, sniff(body)) if body else None,
    )
