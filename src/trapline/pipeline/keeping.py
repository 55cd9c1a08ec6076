"""Storing: what a batch of visits leaves behind, inside the transaction that ends their tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import msgspec

from trapline.archive import visits as archive
from trapline.archive.visits import CrawlType, File, Redirect, Request, Visit
from trapline.db.connection import Connection
from trapline.errors import OUTCOMES, Category, ExitCode
from trapline.extract.version import EXTRACTOR_VERSION
from trapline.frontier import urls
from trapline.frontier.recrawl import History, Interval, Observed, due_at, observe
from trapline.frontier.sql import candidates
from trapline.frontier.urls import Place
from trapline.measure import Recorder
from trapline.model import AgentId, Document, RedirectTrace, UrlId
from trapline.pipeline import noting, shelving, tracking
from trapline.pipeline.kinds import INDEX, IndexTask
from trapline.pipeline.language import Answers
from trapline.pipeline.options import PageOptions
from trapline.pipeline.shelving import keep_texts
from trapline.pipeline.visits import PageVisit, Told
from trapline.queue import logbook
from trapline.queue.agents import Agent
from trapline.queue.finishing import Attempt, NewEvent, written
from trapline.queue.logbook import JobNote
from trapline.queue.retries import Verdict
from trapline.queue.tasks import NewTask
from trapline.store import blobs, fleeting, pages
from trapline.store.blobs import Blobs, Packed
from trapline.store.fleeting import Fleeting
from trapline.store.identity import without_nulls
from trapline.store.pages import Change, Content, Recorded, Sighting

_LONGEST_TRACKING: Final = 256 * 1024
_NO_DIFF: Final = "The difference is too large to be kept with the job."


@dataclass(slots=True)
class _Kept:
    """One visit of the batch, with what is known of it so far."""

    attempt: Attempt
    visit: PageVisit
    packed: Packed | None = None
    visit_id: int = 0
    recorded: Recorded | None = None
    # The document, if it is to be kept.
    stored: Document | None = field(init=False)
    ended: datetime = field(init=False)
    redirects: tuple[RedirectTrace, ...] = field(init=False)

    def __post_init__(self) -> None:
        visit = self.visit
        self.stored = visit.document if visit.is_kept else None
        self.ended = visit.started_at + timedelta(milliseconds=visit.took_ms)
        self.redirects = visit.redirects


@dataclass(slots=True)
class Keeping:
    """Stores visits; `keep` is the store hook of the worker."""

    blobs: Blobs
    agent: Agent | None = None
    interval: Interval = field(default_factory=Interval)
    recorder: Recorder | None = None

    async def keep(self, conn: Connection, attempts: Sequence[Attempt]) -> None:
        """Write visits, blobs, versions and candidates of attempts whose leases held."""
        visited = [_Kept(a, a.value) for a in attempts if isinstance(a.value, PageVisit)]
        # Of what must leave no trace, the task's own end is all that is written for longer.
        batch = [kept for kept in visited if not kept.attempt.task.zero_data_retention]
        await _keep_for_an_hour(conn, visited)
        for kept in batch:
            if kept.stored is not None:
                kept.packed = blobs.pack(kept.visit.fetched.body)
        ids = await urls.intern(conn, {place for kept in batch for place in _places(kept)})
        await self.blobs.put(conn, (kept.packed for kept in batch if kept.packed is not None))
        await self._record_visits(conn, batch, ids)
        await _record_pages(conn, batch, ids)
        await _record_candidates(conn, batch, ids, self.interval)
        await _queue_indexing(conn, batch)
        await logbook.write(conn, [note for kept in batch for note in _notes(kept)])
        await _keep_snapshots(conn, batch)
        await _keep_told(conn, attempts)
        await keep_texts(conn, attempts, self.recorder)
        for kept in visited:
            if kept.attempt.verdict is not Verdict.RETRY:
                result = _result(kept)
                kept.attempt.result = written(result)
                kept.attempt.events.append(_event(kept, result))

    async def _record_visits(
        self, conn: Connection, batch: Sequence[_Kept], ids: dict[Place, UrlId]
    ) -> None:
        visits = [
            _visit(kept, ids, None if self.agent is None else self.agent.id) for kept in batch
        ]
        for kept, visit_id in zip(batch, await archive.record(conn, visits), strict=True):
            kept.visit_id = visit_id


async def _keep_for_an_hour(conn: Connection, visited: Sequence[_Kept]) -> None:
    await fleeting.put(
        conn,
        [
            Fleeting(
                kept.visit.crawl.organisation_id,
                kept.attempt.task.job_id,
                kept.attempt.task.id,
                kept.visit.fetched.url,
                kept.visit.fetched.status,
                kept.visit.fetched.content_type,
                content_of(kept.visit.document, None),
                blobs.pack(kept.visit.fetched.body),
            )
            for kept in visited
            if kept.attempt.task.zero_data_retention
            and kept.visit.document is not None
            # Who waits for a scrape has its answer: nothing of it is written at all.
            and not isinstance(kept.visit.crawl.options, PageOptions)
        ],
    )


async def _keep_snapshots(conn: Connection, batch: Sequence[_Kept]) -> None:
    """Keep what the next scrape of a tracked page is compared with."""
    ended = [kept.visit for kept in batch if kept.attempt.verdict is Verdict.COMPLETED]
    await tracking.keep(conn, [v.snapshot for v in ended if v.snapshot is not None])


async def _keep_told(conn: Connection, attempts: Sequence[Attempt]) -> None:
    """Write what tasks that are no pages came to."""
    told = [(a, a.value) for a in attempts if isinstance(a.value, Told)]
    for attempt, value in told:
        attempt.result = written(value.result)
    await logbook.write(
        conn,
        [
            JobNote(a.task.organisation_id, a.task.job_id, note, trace_id=a.task.trace_id)
            for a, value in told
            for note in value.notes
            if not a.task.zero_data_retention
        ],
    )


async def _queue_indexing(conn: Connection, batch: Sequence[_Kept]) -> None:
    """Have pages made searchable, as tasks of the job that found them, outside its limit."""
    found = [kept for kept in batch if _is_indexed(kept)]
    for kept in found:
        kept.attempt.children.append(_index_task(kept))
    gone = {
        (kept.visit.source.id, kept.visit.task.url)
        for kept in _gone(batch)
        if kept.visit.source is not None
    }
    await shelving.count_pages(
        conn, [(k.attempt.task, k.visit.source) for k in found if k.visit.source is not None]
    )
    await shelving.forget_pages(conn, gone)


def _is_indexed(kept: _Kept) -> bool:
    recorded = kept.recorded
    done = kept.attempt.verdict is Verdict.COMPLETED
    return (
        done
        and kept.visit.source is not None
        and recorded is not None
        and recorded.version_id is not None
    )


def _index_task(kept: _Kept) -> NewTask:
    source, recorded = kept.visit.source, kept.recorded
    assert source is not None  # noqa: S101 (as _is_indexed says)
    assert recorded is not None  # noqa: S101 (the same)
    assert recorded.version_id is not None  # noqa: S101 (the same)
    payload = IndexTask(
        source_id=source.id,
        url=kept.visit.fetched.url,
        page_id=recorded.page_id,
        version_id=recorded.version_id,
        application_id=source.application_id,
    )
    task = kept.attempt.task
    return NewTask(INDEX, payload, counted=False, parent_id=task.id, trace_id=task.trace_id)


def _notes(kept: _Kept) -> Iterator[JobNote]:
    """What the job's log says of a visit. A scrape's caller has the answer itself."""
    visit, task = kept.visit, kept.attempt.task
    ended = noting.attempted(kept.attempt, visit.task.url, visit.task.found_on)
    for note in (*ended, *visit.notes):
        yield JobNote(task.organisation_id, task.job_id, note, visit.site_id, task.trace_id)


def _places(kept: _Kept) -> Iterator[Place]:
    """Every URL of a visit that gets a row."""
    visit = kept.visit
    organisation = visit.crawl.organisation_id
    yield organisation, visit.task.url
    yield organisation, visit.fetched.url
    for request in visit.fetched.requests:
        yield organisation, request.url
    for redirect in kept.redirects:
        yield organisation, redirect.from_url
        yield organisation, redirect.to_url
    for url in visit.discovered:
        yield organisation, url


def _visit(kept: _Kept, ids: dict[Place, UrlId], agent_id: AgentId | None) -> Visit:
    visit, task = kept.visit, kept.attempt.task
    fetched, organisation = visit.fetched, visit.crawl.organisation_id
    code = kept.attempt.code or fetched.exit_code
    return Visit(
        organisation_id=organisation,
        site_id=visit.site_id,
        url_id=ids[organisation, visit.task.url],
        crawl_type=_crawl_type(visit),
        started_at=visit.started_at,
        took_ms=visit.took_ms,
        exit_code=code,
        message=None if code is ExitCode.CONTENT else kept.attempt.error or fetched.message,
        agent_id=agent_id,
        job_id=task.job_id,
        task_id=task.id,
        requests=[Request(ids[organisation, r.url], r) for r in fetched.requests],
        redirects=[
            Redirect(
                ids[organisation, r.from_url],
                ids[organisation, r.to_url],
                r.source,
                r.permanent,
                r.request,
            )
            for r in kept.redirects
        ],
        file=_file(kept, ids),
    )


def _crawl_type(visit: PageVisit) -> CrawlType:
    if visit.crawl.spread is None:
        return CrawlType.SCRAPE
    return CrawlType.PAGE if visit.before is None else CrawlType.RECRAWL


def _file(kept: _Kept, ids: dict[Place, UrlId]) -> File | None:
    visit, fetched = kept.visit, kept.visit.fetched
    if fetched.exit_code is not ExitCode.CONTENT:
        return None
    organisation = visit.crawl.organisation_id
    claimed = visit.claims.canonical
    return File(
        url_id=ids[organisation, fetched.url],
        size=len(fetched.body),
        media_type=fetched.media_type or "application/octet-stream",
        last_modified=fetched.last_modified,
        canonical_url_id=None if claimed is None else ids[organisation, claimed],
        charset=None if visit.document is None else visit.document.charset,
        headers=fetched.headers,
        sha256=None if kept.packed is None else kept.packed.sha256,
    )


async def _record_pages(conn: Connection, batch: Sequence[_Kept], ids: dict[Place, UrlId]) -> None:
    seen = [kept for kept in batch if _was_seen(kept)]
    sightings = [_sighting(kept, ids) for kept in seen]
    for kept, recorded in zip(seen, await pages.record(conn, sightings), strict=True):
        kept.recorded = recorded
    for job_id, gone in groupby(_gone(batch), key=lambda kept: kept.attempt.task.job_id):
        await pages.gone(
            conn,
            [
                (k.visit.site_id, ids[k.visit.crawl.organisation_id, k.visit.task.url], k.ended)
                for k in gone
            ],
            job_id=job_id,
        )


def _gone(batch: Sequence[_Kept]) -> list[_Kept]:
    """What the server has no more, by job."""
    gone = [k for k in batch if OUTCOMES[k.visit.fetched.exit_code].category is Category.GONE]
    return sorted(gone, key=lambda kept: kept.attempt.task.job_id)


def _was_seen(kept: _Kept) -> bool:
    not_modified = kept.visit.fetched.exit_code is ExitCode.NOT_MODIFIED
    return not_modified or kept.stored is not None


def _sighting(kept: _Kept, ids: dict[Place, UrlId]) -> Sighting:
    visit = kept.visit
    organisation = visit.crawl.organisation_id
    return Sighting(
        organisation_id=organisation,
        site_id=visit.site_id,
        url_id=ids[organisation, visit.fetched.url],
        visit_id=kept.visit_id,
        job_id=kept.attempt.task.job_id,
        seen_at=kept.ended,
        status=visit.fetched.status,
        content=None if kept.stored is None else content_of(kept.stored, kept.packed, visit.digest),
        comparison=visit.comparison,
    )


def content_of(document: Document, packed: Packed | None, digest: bytes | None = None) -> Content:
    """Return what is stored of a document; `digest` is the hash of its text where that is known."""
    metadata = document.metadata
    return Content(
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
    conn: Connection, batch: Sequence[_Kept], ids: dict[Place, UrlId], interval: Interval
) -> None:
    await _discover(conn, batch, ids)
    once = {
        (k.visit.site_id, ids[k.visit.crawl.organisation_id, k.visit.task.url]): k for k in batch
    }
    if not once:
        return
    learnt = [_learnt(kept, interval) for kept in once.values()]
    contentful = [_is_contentful(kept) for kept in once.values()]
    await candidates.visit_candidates(
        conn,
        site_ids=[site_id for site_id, _ in once],
        url_ids=[url_id for _, url_id in once],
        organisation_ids=[k.visit.crawl.organisation_id for k in once.values()],
        visited_ats=[k.ended for k in once.values()],
        exit_codes=[k.visit.fetched.exit_code for k in once.values()],
        contentful_ats=[
            k.ended if content else None
            for k, content in zip(once.values(), contentful, strict=True)
        ],
        etags=[_validator(k) for k in once.values()],
        last_modifieds=[k.visit.fetched.last_modified for k in once.values()],
        looks=[history.observed.looks for history, _ in learnt],
        changes=[history.observed.changes for history, _ in learnt],
        seconds=[history.observed.seconds for history, _ in learnt],
        failures=[
            0 if content else history.failures + 1
            for (history, _), content in zip(learnt, contentful, strict=True)
        ],
        due_ats=[due for _, due in learnt],
    )


async def _discover(conn: Connection, batch: Sequence[_Kept], ids: dict[Place, UrlId]) -> None:
    found = [
        (kept.visit.site_id, ids[organisation, url], organisation)
        for kept in batch
        for organisation in (kept.visit.crawl.organisation_id,)
        for url in kept.visit.discovered
    ]
    if found:
        await candidates.discover_candidates(
            conn,
            site_ids=[site_id for site_id, _, _ in found],
            url_ids=[url_id for _, url_id, _ in found],
            organisation_ids=[organisation for _, _, organisation in found],
        )


def _learnt(kept: _Kept, interval: Interval) -> tuple[History, datetime | None]:
    """What is known of the page after this visit, and when it is due again."""
    before, now = kept.visit.before, kept.ended
    observed, failures = Observed(), 0
    if before is not None:
        observed = Observed(before.looks, before.changes, before.seconds)
        failures = before.failures
        if before.last_contentful_at is not None and _is_contentful(kept):
            changed = kept.recorded is not None and kept.recorded.change is Change.CHANGED
            elapsed = max(now - before.last_contentful_at, timedelta())
            observed = observe(observed, changed=changed, elapsed=elapsed)
    history = History(observed, failures, kept.visit.task.changes)
    return history, due_at(kept.visit.fetched.exit_code, history, now=now, interval=interval)


def _is_contentful(kept: _Kept) -> bool:
    return OUTCOMES[kept.visit.fetched.exit_code].category is Category.CONTENTFUL


def _validator(kept: _Kept) -> str | None:
    """The ETag to send next time: only one that came from the URL itself, not from a redirect."""
    fetched = kept.visit.fetched
    return fetched.etag if fetched.url == kept.visit.task.url else None


def _result(kept: _Kept) -> dict[str, object]:
    recorded, fetched = kept.recorded, kept.visit.fetched
    kept.visit.recorded, kept.visit.visit_id = recorded, kept.visit_id or None
    code = int(kept.attempt.code or fetched.exit_code)
    if kept.attempt.task.zero_data_retention:
        return {"status": fetched.status, "exit_code": code}
    return {
        "url": fetched.url,
        "status": fetched.status,
        "exit_code": code,
        "visit_id": kept.visit_id,
        "page_id": None if recorded is None else str(recorded.page_id),
        "version_id": None if recorded is None else recorded.version_id,
        "change": None if recorded is None else recorded.change,
    } | _answers(kept.visit.answers)


def _answers(answers: Answers | None) -> dict[str, object]:
    """What a language model said; most jobs ask none."""
    if answers is None:
        return {}
    return {
        "answers": answers.values,
        "warnings": answers.warnings,
        "tokens": answers.usage.total,
    }


def _event(kept: _Kept, result: dict[str, object]) -> NewEvent:
    told = result | {"error": kept.attempt.error}
    tracked = kept.visit.tracked
    if tracked is not None:
        told["tracking"] = tracked
        if len(msgspec.json.encode(tracked)) > _LONGEST_TRACKING:
            told["tracking"] = {name: tracked[name] for name in tracked if name != "diff"}
            told["warnings"] = [_NO_DIFF]
    return NewEvent("page", told)
