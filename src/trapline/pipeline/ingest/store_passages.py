"""Stores texts in the transaction that finishes their tasks: passages, source states, counters, events."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from msgspec import structs

from trapline.db.connection import Connection
from trapline.knowledge import passage_index, progress_counters
from trapline.knowledge.embedding.embedder import EmbeddingModel
from trapline.knowledge.passage_index import IndexableText, IndexTimings, SourceGeneration
from trapline.knowledge.progress_counters import CounterChange
from trapline.knowledge.sources import SourceRef
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import SourceTargetsRow
from trapline.measure import Operation, Recorder
from trapline.model import JobId, SourceId, TaskId
from trapline.pipeline.ingest.index_task import PreparedText
from trapline.pipeline.kinds import FILE, INDEX
from trapline.pipeline.sql import sources
from trapline.pipeline.sql.sources import JobsOfItemsRow
from trapline.queue.finish import Attempt, NewEvent
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.tasks import Task

_ENDED = {TaskOutcome.COMPLETED: "completed", TaskOutcome.FAILED: "failed"}


async def store_texts(
    conn: Connection, attempts: Sequence[Attempt], recorder: Recorder | None = None
) -> dict[TaskId, Attempt]:
    """Store the texts of completed tasks and the errors of failed ones; return their attempts."""
    items = [a for a in attempts if a.task.kind in (FILE, INDEX)]
    if not items:
        return {}
    ids = sorted({a.task.payload.source_id for a in items})
    # The rows are locked: a generation must not be swapped while texts are written into it.
    places = {row.source_id: row for row in await queries.source_targets(conn, source_ids=ids)}
    items = [_rechecked(attempt, places) for attempt in items]
    ended = [a for a in items if a.outcome in _ENDED]
    took = IndexTimings()
    values = [a.result.value for a in ended]
    await _store(conn, [value for value in values if isinstance(value, PreparedText)], took)
    if recorder is not None:
        _record_times(recorder, ended, took)
    jobs = await _end(conn, ended, places)
    return {
        a.task.id: _with_event(a, places[a.task.payload.source_id], jobs)
        if a.outcome in _ENDED
        else a.with_value(None)
        for a in items
    }


def _record_times(recorder: Recorder, ended: Sequence[Attempt], took: IndexTimings) -> None:
    """Record the time of writing each text: its share of the batch, by passages."""
    texts = [
        (a.task, a.result.value.text)
        for a in ended
        if isinstance(a.result.value, PreparedText) and a.result.value.text is not None
    ]
    passages = sum(len(text.passages) for _, text in texts)
    for task, text in texts:
        share = 1000 * len(text.passages) / max(passages, 1)
        for kind, seconds in (("vector", took.vector), ("bm25", took.bm25)):
            recorder.operation(
                Operation(
                    type=kind,
                    name="store",
                    organisation_id=task.organisation_id,
                    milliseconds=seconds * share,
                    job_id=task.job_id,
                    task_id=task.id,
                    document_url=text.entry.uri,
                )
            )


def _rechecked(attempt: Attempt, places: Mapping[SourceId, SourceTargetsRow]) -> Attempt:
    """Skip a task whose source was deleted; retry one whose source was re-embedded meanwhile."""
    row, value = places.get(attempt.task.payload.source_id), attempt.result.value
    if attempt.outcome not in _ENDED:
        return attempt
    if row is None:
        return structs.replace(
            attempt.with_value(None), outcome=TaskOutcome.SKIPPED, error="The source was deleted."
        )
    if isinstance(value, PreparedText) and value.place.generation != row.generation:
        return structs.replace(
            attempt.with_value(None),
            outcome=TaskOutcome.RETRY,
            error="The source was renewed meanwhile.",
            run_at=datetime.now(UTC),
        )
    return attempt


async def _store(conn: Connection, prepared: Iterable[PreparedText], took: IndexTimings) -> None:
    """Write texts; of two versions of one text, the later."""
    latest: dict[tuple[SourceGeneration, str], tuple[IndexableText, EmbeddingModel]] = {}
    for one in prepared:
        if one.text is not None and one.model is not None:
            latest[one.place, one.text.entry.uri] = (one.text, one.model)
    by_place: dict[tuple[SourceGeneration, EmbeddingModel], list[IndexableText]] = {}
    for (place, _), (text, model) in latest.items():
        by_place.setdefault((place, model), []).append(text)
    await passage_index.store_batches(
        conn, [(place, model, texts) for (place, model), texts in by_place.items()], took
    )


async def _end(
    conn: Connection, ended: Sequence[Attempt], places: Mapping[SourceId, SourceTargetsRow]
) -> dict[JobId, JobsOfItemsRow]:
    """Note how files ended and count all items; return their jobs."""
    if not ended:
        return {}
    rows = await sources.jobs_of_items(conn, job_ids=list({a.task.job_id for a in ended}))
    jobs = {row.job_id: row for row in rows}
    files = [a for a in ended if a.task.kind == FILE]
    await queries.finish_files(
        conn,
        source_ids=[a.task.payload.source_id for a in files],
        job_ids=[a.task.job_id for a in files],
        statuses=[_ENDED[a.outcome] for a in files],
        errors=[a.error for a in files],
    )
    await progress_counters.add(
        conn,
        [
            CounterChange(
                attempt.task.organisation_id,
                scope,
                attempt.task.job_id,
                jobs[attempt.task.job_id].created_at,
                completed=attempt.outcome is TaskOutcome.COMPLETED,
                failed=attempt.outcome is TaskOutcome.FAILED,
            )
            for attempt in ended
            for scope in scopes_of(places[attempt.task.payload.source_id])
        ],
    )
    return jobs


async def count_pages(conn: Connection, pages: Sequence[tuple[Task, SourceRef]]) -> None:
    """Add pages that are about to be indexed to the totals."""
    if not pages:
        return
    rows = await sources.jobs_of_items(conn, job_ids=list({task.job_id for task, _ in pages}))
    created = {row.job_id: row.created_at for row in rows}
    await progress_counters.add(
        conn,
        [
            CounterChange(task.organisation_id, scope, task.job_id, created[task.job_id], total=1)
            for task, source in pages
            for scope in (source.id, source.application_id)
            if scope is not None
        ],
    )


async def remove_pages(conn: Connection, gone: Iterable[tuple[SourceId, str]]) -> None:
    """Remove pages from search that no longer exist."""
    by_source: dict[SourceId, list[str]] = {}
    for source_id, url in sorted(gone):
        by_source.setdefault(source_id, []).append(url)
    for source_id, urls in by_source.items():
        await passage_index.delete_entries(conn, source_id, urls)


def scopes_of(row: SourceTargetsRow) -> list[UUID]:
    """Return the progress counters of an item: of its source, unless that is one file, and application."""
    scopes: list[UUID] = [] if row.kind == "file" else [row.source_id]
    return scopes if row.application_id is None else [*scopes, row.application_id]


def _with_event(
    attempt: Attempt, row: SourceTargetsRow, jobs: Mapping[JobId, JobsOfItemsRow]
) -> Attempt:
    """Return the attempt with its stored result and the event of the finished item."""
    payload, value = attempt.task.payload, attempt.result.value
    text = value.text if isinstance(value, PreparedText) else None
    member_id = jobs[attempt.task.job_id].member_id or row.created_by
    result = {
        "source_id": str(row.source_id),
        "application_id": None if row.application_id is None else str(row.application_id),
        "name": row.name,
        "uri": payload.uri if attempt.task.kind == FILE else payload.url,
        "status": _ENDED[attempt.outcome],
        "error": attempt.error,
        "passages": None if text is None else len(text.passages),
        "tokens": None if text is None else sum(one.tokens for one in text.passages),
        "reused": value.reused if isinstance(value, PreparedText) else 0,
        "warning": value.warning if isinstance(value, PreparedText) else None,
        "user_id": None if member_id is None else str(member_id),
    }
    done = attempt.outcome is TaskOutcome.COMPLETED
    events = [*attempt.result.events, NewEvent("item", result)]
    return attempt.with_value(result if done else None, events=events)
