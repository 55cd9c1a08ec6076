"""Storing texts with the end of their tasks: passages, how each source ended, counts and events."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from trapline.db.connection import Connection
from trapline.knowledge import indexing, tally
from trapline.knowledge.embedding.embedder import Model
from trapline.knowledge.indexing import Indexable, Place, Took
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import PlacesRow
from trapline.knowledge.tally import Change
from trapline.measure import Operation, Recorder
from trapline.model import JobId, SourceId
from trapline.pipeline.crawls import SourceRef
from trapline.pipeline.ingesting import Prepared
from trapline.pipeline.kinds import FILE, INDEX
from trapline.pipeline.sql import ingestion
from trapline.pipeline.sql.ingestion import JobsOfItemsRow
from trapline.queue.finishing import Attempt, NewEvent, written
from trapline.queue.retries import Verdict
from trapline.queue.tasks import Task

_ENDED = {Verdict.COMPLETED: "completed", Verdict.FAILED: "failed"}


async def keep_texts(
    conn: Connection, attempts: Sequence[Attempt], recorder: Recorder | None = None
) -> None:
    """Store what tasks have prepared; of those that failed, note why."""
    items = [a for a in attempts if a.task.kind in (FILE, INDEX)]
    if not items:
        return
    ids = sorted({a.task.payload.source_id for a in items})
    # They are held so that a generation cannot be exchanged under what is written into it.
    places = {row.source_id: row for row in await queries.places(conn, source_ids=ids)}
    for attempt in items:
        _recheck(attempt, places)
    ended = [a for a in items if a.verdict in _ENDED]
    took = Took()
    await _store(conn, [a.value for a in ended if isinstance(a.value, Prepared)], took)
    if recorder is not None:
        _measure(recorder, ended, took)
    await _end(conn, ended, places)


def _measure(recorder: Recorder, ended: Sequence[Attempt], took: Took) -> None:
    """Note what it took to write each text: of a batch, its share by passages."""
    texts = [
        (a.task, a.value.text)
        for a in ended
        if isinstance(a.value, Prepared) and a.value.text is not None
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


def _recheck(attempt: Attempt, places: Mapping[SourceId, PlacesRow]) -> None:
    """Let go what was prepared for a source that is gone, and repeat it for one that was renewed."""
    row = places.get(attempt.task.payload.source_id)
    if attempt.verdict not in _ENDED:
        return
    if row is None:
        attempt.verdict, attempt.error = Verdict.SKIPPED, "The source was deleted."
        attempt.value = None
    elif isinstance(attempt.value, Prepared) and attempt.value.place.generation != row.generation:
        attempt.verdict, attempt.error = Verdict.RETRY, "The source was renewed meanwhile."
        attempt.run_at, attempt.value = datetime.now(UTC), None


async def _store(conn: Connection, prepared: Iterable[Prepared], took: Took) -> None:
    """Write texts; of one that is there twice, the later."""
    latest: dict[tuple[Place, str], tuple[Indexable, Model]] = {}
    for one in prepared:
        if one.text is not None and one.model is not None:
            latest[one.place, one.text.entry.uri] = (one.text, one.model)
    by_place: dict[tuple[Place, Model], list[Indexable]] = {}
    for (place, _), (text, model) in latest.items():
        by_place.setdefault((place, model), []).append(text)
    await indexing.store_all(
        conn, [(place, model, texts) for (place, model), texts in by_place.items()], took
    )


async def _end(
    conn: Connection, ended: Sequence[Attempt], places: Mapping[SourceId, PlacesRow]
) -> None:
    if not ended:
        return
    found = await ingestion.jobs_of_items(conn, job_ids=list({a.task.job_id for a in ended}))
    jobs = {row.job_id: row for row in found}
    files = [a for a in ended if a.task.kind == FILE]
    await queries.end_files(
        conn,
        source_ids=[a.task.payload.source_id for a in files],
        job_ids=[a.task.job_id for a in files],
        statuses=[_ENDED[a.verdict] for a in files],
        errors=[a.error for a in files],
    )
    await tally.add(
        conn,
        [
            Change(
                attempt.task.organisation_id,
                scope,
                attempt.task.job_id,
                jobs[attempt.task.job_id].created_at,
                completed=attempt.verdict is Verdict.COMPLETED,
                failed=attempt.verdict is Verdict.FAILED,
            )
            for attempt in ended
            for scope in scopes_of(places[attempt.task.payload.source_id])
        ],
    )
    for attempt in ended:
        _tell(attempt, places[attempt.task.payload.source_id], jobs)


async def count_pages(conn: Connection, found: Sequence[tuple[Task, SourceRef]]) -> None:
    """Count pages that are about to be made searchable."""
    if not found:
        return
    rows = await ingestion.jobs_of_items(conn, job_ids=list({task.job_id for task, _ in found}))
    made = {row.job_id: row.created_at for row in rows}
    await tally.add(
        conn,
        [
            Change(task.organisation_id, scope, task.job_id, made[task.job_id], total=1)
            for task, source in found
            for scope in (source.id, source.application_id)
            if scope is not None
        ],
    )


async def forget_pages(conn: Connection, gone: Iterable[tuple[SourceId, str]]) -> None:
    """Remove pages from search that their server has no more."""
    by_source: dict[SourceId, list[str]] = {}
    for source_id, url in sorted(gone):
        by_source.setdefault(source_id, []).append(url)
    for source_id, urls in by_source.items():
        await indexing.forget(conn, source_id, urls)


def scopes_of(row: PlacesRow) -> list[UUID]:
    """Return what an item of a source is counted in. A file is one item: its own row says how it is."""
    scopes: list[UUID] = [] if row.kind == "file" else [row.source_id]
    return scopes if row.application_id is None else [*scopes, row.application_id]


def _tell(attempt: Attempt, row: PlacesRow, jobs: Mapping[JobId, JobsOfItemsRow]) -> None:
    """Say what became of an item, and to whom it matters."""
    payload, value = attempt.task.payload, attempt.value
    text = value.text if isinstance(value, Prepared) else None
    asked_by = jobs[attempt.task.job_id].member_id or row.created_by
    result = {
        "source_id": str(row.source_id),
        "application_id": None if row.application_id is None else str(row.application_id),
        "name": row.name,
        "uri": payload.uri if attempt.task.kind == FILE else payload.url,
        "status": _ENDED[attempt.verdict],
        "error": attempt.error,
        "passages": None if text is None else len(text.passages),
        "tokens": None if text is None else sum(one.tokens for one in text.passages),
        "reused": value.reused if isinstance(value, Prepared) else 0,
        "warning": value.warning if isinstance(value, Prepared) else None,
        "user_id": None if asked_by is None else str(asked_by),
    }
    if attempt.verdict is Verdict.COMPLETED:
        attempt.result = written(result)
    attempt.events.append(NewEvent("item", result))
