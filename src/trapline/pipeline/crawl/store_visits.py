"""Store, step six: writes a batch of visits inside the transaction that finishes their tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import msgspec
from msgspec import structs

from trapline.archive import visits as archive
from trapline.archive.visits import CrawlType, Visit, VisitFile, VisitRedirect, VisitRequest
from trapline.db.connection import Connection
from trapline.errors import OUTCOMES, Category, ExitCode
from trapline.extract.version import EXTRACTOR_VERSION
from trapline.frontier import url_rows
from trapline.frontier.recrawl import (
    CandidateHistory,
    ChangeObservations,
    Interval,
    due_at,
    observe,
)
from trapline.frontier.sql import candidates
from trapline.frontier.url_rows import OwnedUrl
from trapline.measure import Recorder
from trapline.model import AgentId, Document, RedirectTrace, UrlId
from trapline.pipeline.crawl import change_tracking, job_log_messages
from trapline.pipeline.crawl.visit_result import LoggedResult, PageResult, PageVisit
from trapline.pipeline.ingest import store_passages
from trapline.pipeline.ingest.store_passages import store_texts
from trapline.pipeline.kinds import INDEX, IndexTask
from trapline.pipeline.options import PageOptions
from trapline.queue import job_log
from trapline.queue.agents import Agent
from trapline.queue.finish import Attempt, NewEvent
from trapline.queue.job_log import JobNote
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.tasks import NewTask
from trapline.store import blobs, pages, zero_retention
from trapline.store.blobs import BlobStore, PackedBlob
from trapline.store.content_hash import without_nulls
from trapline.store.pages import PageChange, PageContent, RecordedPage, Sighting
from trapline.store.zero_retention import ZeroRetentionResult

_MAX_TRACKING_BYTES: Final = 256 * 1024
_NO_DIFF: Final = "The diff is too large to be stored with the job."


@dataclass(slots=True)
class _Entry:
    """One visit of the batch, with the ids of its rows so far."""

    attempt: Attempt
    visit: PageVisit
    packed: PackedBlob | None = None
    visit_id: int = 0
    recorded: RecordedPage | None = None
    # The document, if it is stored.
    stored: Document | None = field(init=False)
    ended: datetime = field(init=False)
    redirects: tuple[RedirectTrace, ...] = field(init=False)

    def __post_init__(self) -> None:
        visit = self.visit
        self.stored = visit.document if visit.is_stored else None
        self.ended = visit.started_at + timedelta(milliseconds=visit.took_ms)
        self.redirects = visit.redirects


@dataclass(slots=True)
class VisitStore:
    """Stores visits; `store` is the store hook of the worker."""

    blobs: BlobStore
    agent: Agent
    interval: Interval
    recorder: Recorder | None = None

    async def store(self, conn: Connection, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Write visits, blobs, versions and candidates of attempts whose leases held."""
        visited = [
            _Entry(a, a.result.value) for a in attempts if isinstance(a.result.value, PageVisit)
        ]
        # With zero retention, only the end of the task is written for longer than an hour.
        batch = [entry for entry in visited if not entry.attempt.task.zero_data_retention]
        await _store_zero_retention(conn, visited)
        for entry in batch:
            if entry.stored is not None:
                entry.packed = blobs.pack(entry.visit.fetched.body)
        ids = await url_rows.intern(conn, {place for entry in batch for place in _places(entry)})
        await self.blobs.put(conn, (entry.packed for entry in batch if entry.packed is not None))
        await self._record_visits(conn, batch, ids)
        await _record_pages(conn, batch, ids)
        await _record_candidates(conn, batch, ids, self.interval)
        await _count_indexed(conn, batch)
        await job_log.write(conn, [note for entry in batch for note in _notes(entry)])
        await _store_snapshots(conn, batch)
        await _log_results(conn, attempts)
        ended = {entry.attempt.task.id: _ended(entry) for entry in visited}
        ended |= await store_texts(conn, attempts, self.recorder)
        return [ended.get(attempt.task.id) or _without_visit(attempt) for attempt in attempts]

    async def _record_visits(
        self, conn: Connection, batch: Sequence[_Entry], ids: dict[OwnedUrl, UrlId]
    ) -> None:
        visits = [_visit(entry, ids, self.agent.id) for entry in batch]
        for entry, visit_id in zip(batch, await archive.record(conn, visits), strict=True):
            entry.visit_id = visit_id


async def _store_zero_retention(conn: Connection, visited: Sequence[_Entry]) -> None:
    await zero_retention.put(
        conn,
        [
            ZeroRetentionResult(
                entry.visit.context.organisation_id,
                entry.attempt.task.job_id,
                entry.attempt.task.id,
                entry.visit.fetched.url,
                entry.visit.fetched.status,
                entry.visit.fetched.content_type,
                content_of(entry.visit.document, None),
                blobs.pack(entry.visit.fetched.body),
            )
            for entry in visited
            if entry.attempt.task.zero_data_retention
            and entry.visit.document is not None
            # The caller of a scrape has the result: nothing of it is written.
            and not isinstance(entry.visit.context.options, PageOptions)
        ],
    )


async def _store_snapshots(conn: Connection, batch: Sequence[_Entry]) -> None:
    """Store the snapshots that the next scrapes of tracked pages are compared with."""
    ended = [entry.visit for entry in batch if entry.attempt.outcome is TaskOutcome.COMPLETED]
    await change_tracking.store_snapshots(
        conn, [v.snapshot for v in ended if v.snapshot is not None]
    )


async def _log_results(conn: Connection, attempts: Sequence[Attempt]) -> None:
    """Write the job log of tasks that visit no page."""
    await job_log.write(
        conn,
        [
            JobNote(a.task.organisation_id, a.task.job_id, note, trace_id=a.task.trace_id)
            for a in attempts
            if isinstance(a.result.value, LoggedResult) and not a.task.zero_data_retention
            for note in a.result.value.notes
        ],
    )


def _without_visit(attempt: Attempt) -> Attempt:
    """Return the attempt at a task that is no page, with the value that is stored."""
    value = attempt.result.value
    return attempt.with_value(value.result if isinstance(value, LoggedResult) else None)


async def _count_indexed(conn: Connection, batch: Sequence[_Entry]) -> None:
    """Count the pages that become searchable; remove those from search that are gone."""
    found = [entry for entry in batch if _is_indexed(entry)]
    gone = {
        (entry.visit.source.id, entry.visit.task.url)
        for entry in _gone(batch)
        if entry.visit.source is not None
    }
    await store_passages.count_pages(
        conn, [(k.attempt.task, k.visit.source) for k in found if k.visit.source is not None]
    )
    await store_passages.remove_pages(conn, gone)


def _is_indexed(entry: _Entry) -> bool:
    recorded = entry.recorded
    done = entry.attempt.outcome is TaskOutcome.COMPLETED
    return (
        done
        and entry.visit.source is not None
        and recorded is not None
        and recorded.version_id is not None
    )


def _index_task(entry: _Entry) -> NewTask:
    """Have a page made searchable, by a task of the job that found it, outside the job's limit."""
    source, recorded = entry.visit.source, entry.recorded
    assert source is not None  # noqa: S101 (as _is_indexed says)
    assert recorded is not None  # noqa: S101 (the same)
    assert recorded.version_id is not None  # noqa: S101 (the same)
    payload = IndexTask(
        source_id=source.id,
        url=entry.visit.fetched.url,
        page_id=recorded.page_id,
        version_id=recorded.version_id,
        application_id=source.application_id,
    )
    task = entry.attempt.task
    return NewTask(INDEX, payload, counted=False, parent_id=task.id, trace_id=task.trace_id)


def _notes(entry: _Entry) -> Iterator[JobNote]:
    """Return the job-log notes of a visit."""
    visit, task = entry.visit, entry.attempt.task
    ended = job_log_messages.visit_ended(entry.attempt, visit.task.url, visit.task.found_on)
    for note in (*ended, *visit.notes):
        yield JobNote(task.organisation_id, task.job_id, note, visit.site_id, task.trace_id)


def _places(entry: _Entry) -> Iterator[OwnedUrl]:
    """Every URL of a visit that gets a row."""
    visit = entry.visit
    organisation = visit.context.organisation_id
    yield organisation, visit.task.url
    yield organisation, visit.fetched.url
    for request in visit.fetched.requests:
        yield organisation, request.url
    for redirect in entry.redirects:
        yield organisation, redirect.from_url
        yield organisation, redirect.to_url
    for url in visit.discovered:
        yield organisation, url


def _visit(entry: _Entry, ids: dict[OwnedUrl, UrlId], agent_id: AgentId | None) -> Visit:
    visit, task = entry.visit, entry.attempt.task
    fetched, organisation = visit.fetched, visit.context.organisation_id
    code = entry.attempt.code or fetched.exit_code
    return Visit(
        organisation_id=organisation,
        site_id=visit.site_id,
        url_id=ids[organisation, visit.task.url],
        crawl_type=_crawl_type(visit),
        started_at=visit.started_at,
        took_ms=visit.took_ms,
        exit_code=code,
        message=None if code is ExitCode.CONTENT else entry.attempt.error or fetched.message,
        agent_id=agent_id,
        job_id=task.job_id,
        task_id=task.id,
        requests=[VisitRequest(ids[organisation, r.url], r) for r in fetched.requests],
        redirects=[
            VisitRedirect(
                ids[organisation, r.from_url],
                ids[organisation, r.to_url],
                r.source,
                r.permanent,
                r.request,
            )
            for r in entry.redirects
        ],
        file=_file(entry, ids),
    )


def _crawl_type(visit: PageVisit) -> CrawlType:
    if visit.context.following is None:
        return CrawlType.SCRAPE
    return CrawlType.PAGE if visit.previous is None else CrawlType.RECRAWL


def _file(entry: _Entry, ids: dict[OwnedUrl, UrlId]) -> VisitFile | None:
    visit, fetched = entry.visit, entry.visit.fetched
    if fetched.exit_code is not ExitCode.CONTENT:
        return None
    organisation = visit.context.organisation_id
    canonical = visit.directives.canonical
    return VisitFile(
        url_id=ids[organisation, fetched.url],
        size=len(fetched.body),
        media_type=fetched.media_type or "application/octet-stream",
        last_modified=fetched.last_modified,
        canonical_url_id=None if canonical is None else ids[organisation, canonical],
        charset=None if visit.document is None else visit.document.charset,
        headers=fetched.headers,
        sha256=None if entry.packed is None else entry.packed.sha256,
    )


async def _record_pages(
    conn: Connection, batch: Sequence[_Entry], ids: dict[OwnedUrl, UrlId]
) -> None:
    seen = [entry for entry in batch if _was_seen(entry)]
    sightings = [_sighting(entry, ids) for entry in seen]
    for entry, recorded in zip(seen, await pages.record(conn, sightings), strict=True):
        entry.recorded = structs.replace(
            recorded, version_id=_confirmed(entry) or recorded.version_id
        )
    for job_id, gone in groupby(_gone(batch), key=lambda entry: entry.attempt.task.job_id):
        await pages.mark_gone(
            conn,
            [
                (k.visit.site_id, ids[k.visit.context.organisation_id, k.visit.task.url], k.ended)
                for k in gone
            ],
            job_id=job_id,
        )


def _confirmed(entry: _Entry) -> int | None:
    """The version that a 304 confirms: another visit may have written a later one of another variant."""
    before = entry.visit.previous
    not_modified = entry.visit.fetched.exit_code is ExitCode.NOT_MODIFIED
    return before.version_id if not_modified and before is not None else None


def _gone(batch: Sequence[_Entry]) -> list[_Entry]:
    """Return the visits of pages that are gone, ordered by job."""
    gone = [k for k in batch if OUTCOMES[k.visit.fetched.exit_code].category is Category.GONE]
    return sorted(gone, key=lambda entry: entry.attempt.task.job_id)


def _was_seen(entry: _Entry) -> bool:
    not_modified = entry.visit.fetched.exit_code is ExitCode.NOT_MODIFIED
    return not_modified or entry.stored is not None


def _sighting(entry: _Entry, ids: dict[OwnedUrl, UrlId]) -> Sighting:
    visit = entry.visit
    organisation = visit.context.organisation_id
    return Sighting(
        organisation_id=organisation,
        site_id=visit.site_id,
        url_id=ids[organisation, visit.fetched.url],
        visit_id=entry.visit_id,
        job_id=entry.attempt.task.job_id,
        seen_at=entry.ended,
        status=visit.fetched.status,
        content=None
        if entry.stored is None
        else content_of(entry.stored, entry.packed, visit.digest),
        comparison=visit.comparison,
        variant=visit.context.variant,
    )


def content_of(
    document: Document, packed: PackedBlob | None, digest: bytes | None = None
) -> PageContent:
    """Return what is stored of a document; `digest` is the hash of its text where that is known."""
    metadata = document.metadata
    return PageContent(
        text=without_nulls(document.text),
        markdown=without_nulls(document.markdown),
        extractor_version=EXTRACTOR_VERSION,
        content_type=document.content_type,
        title=metadata.title and without_nulls(metadata.title),
        language=document.language,
        page_type=document.page_type,
        metadata=metadata,
        links=[link.url for link in document.links],
        warning=document.warning,
        sha256=None if packed is None else packed.sha256,
        digest=digest,
    )


async def _record_candidates(
    conn: Connection, batch: Sequence[_Entry], ids: dict[OwnedUrl, UrlId], interval: Interval
) -> None:
    await _discover(conn, batch, ids)
    once = {
        (k.visit.site_id, ids[k.visit.context.organisation_id, k.visit.task.url]): k for k in batch
    }
    if not once:
        return
    histories = [_updated_history(entry, interval) for entry in once.values()]
    contentful = [_is_contentful(entry) for entry in once.values()]
    await candidates.visit_candidates(
        conn,
        site_ids=[site_id for site_id, _ in once],
        url_ids=[url_id for _, url_id in once],
        organisation_ids=[k.visit.context.organisation_id for k in once.values()],
        visited_ats=[k.ended for k in once.values()],
        exit_codes=[k.visit.fetched.exit_code for k in once.values()],
        contentful_ats=[
            k.ended if content else None
            for k, content in zip(once.values(), contentful, strict=True)
        ],
        etags=[k.visit.fetched.etag if _validates(k) else None for k in once.values()],
        last_modifieds=[
            k.visit.fetched.last_modified if _validates(k) else None for k in once.values()
        ],
        looks=[history.observed.looks for history, _ in histories],
        changes=[history.observed.changes for history, _ in histories],
        seconds=[history.observed.seconds for history, _ in histories],
        failures=[
            0 if content else history.failures + 1
            for (history, _), content in zip(histories, contentful, strict=True)
        ],
        due_ats=[due for _, due in histories],
    )


async def _discover(conn: Connection, batch: Sequence[_Entry], ids: dict[OwnedUrl, UrlId]) -> None:
    found = [
        (entry.visit.site_id, ids[organisation, url], organisation)
        for entry in batch
        for organisation in (entry.visit.context.organisation_id,)
        for url in entry.visit.discovered
    ]
    if found:
        await candidates.discover_candidates(
            conn,
            site_ids=[site_id for site_id, _, _ in found],
            url_ids=[url_id for _, url_id, _ in found],
            organisation_ids=[organisation for _, _, organisation in found],
        )


def _updated_history(entry: _Entry, interval: Interval) -> tuple[CandidateHistory, datetime | None]:
    """Return the page's history after this visit, and when it is due again."""
    before, now = entry.visit.previous, entry.ended
    observed, failures = ChangeObservations(), 0
    if before is not None:
        observed = ChangeObservations(before.looks, before.changes, before.seconds)
        failures = before.failures
        if before.last_contentful_at is not None and _is_contentful(entry):
            changed = entry.recorded is not None and entry.recorded.change is PageChange.CHANGED
            elapsed = max(now - before.last_contentful_at, timedelta())
            observed = observe(observed, changed=changed, elapsed=elapsed)
    history = CandidateHistory(observed, failures, entry.visit.task.changes)
    return history, due_at(entry.visit.fetched.exit_code, history, now=now, interval=interval)


def _is_contentful(entry: _Entry) -> bool:
    return OUTCOMES[entry.visit.fetched.exit_code].category is Category.CONTENTFUL


def _validates(entry: _Entry) -> bool:
    """Whether the ETag and date are sent next time: of the URL itself, not of where it redirects to.

    Nor of a page that was not stored: they would confirm the version before.
    """
    return entry.recorded is not None and entry.visit.fetched.url == entry.visit.task.url


def _ended(entry: _Entry) -> Attempt:
    """Return a visit's attempt with its stored result, its event and the task that indexes the page."""
    attempt = entry.attempt
    if attempt.outcome is TaskOutcome.RETRY:
        return attempt.with_value(None)
    value, result = _result(entry), attempt.result
    children = [*result.children, _index_task(entry)] if _is_indexed(entry) else result.children
    return attempt.with_value(
        value, children=children, events=[*result.events, _event(entry, value)]
    )


def _result(entry: _Entry) -> PageResult:
    recorded, fetched = entry.recorded, entry.visit.fetched
    code = int(entry.attempt.code or fetched.exit_code)
    if entry.attempt.task.zero_data_retention:
        return {"status": fetched.status, "exit_code": code}
    result: PageResult = {
        "url": fetched.url,
        "status": fetched.status,
        "exit_code": code,
        "visit_id": entry.visit_id,
        "page_id": None if recorded is None else recorded.page_id,
        "version_id": None if recorded is None else recorded.version_id,
        "change": None if recorded is None else recorded.change,
    }
    answers = entry.visit.answers
    if answers is not None:
        result["answers"] = answers.values
        result["warnings"] = answers.warnings
        result["tokens"] = answers.usage.total
    return result


def _event(entry: _Entry, result: PageResult) -> NewEvent:
    data: dict[str, object] = {**result, "error": entry.attempt.error}
    tracked = entry.visit.tracked
    if tracked is not None:
        data["tracking"] = tracked
        if len(msgspec.json.encode(tracked)) > _MAX_TRACKING_BYTES:
            data["tracking"] = {name: tracked[name] for name in tracked if name != "diff"}
            data["warnings"] = [_NO_DIFF]
    return NewEvent("page", data)
