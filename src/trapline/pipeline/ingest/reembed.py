"""Re-embedding: a source's texts get another config while search goes on with the old ones.

One task re-embeds one source. It writes a new generation of texts, some at a time, and resumes after
an interruption; its last transaction swaps the generations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.knowledge import passage_index
from trapline.knowledge.embedding.embedders import STATIC, Embedders, default_config
from trapline.knowledge.passage_index import IndexEntry, SourceGeneration
from trapline.knowledge.source_config import IngestConfig, read_config
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import EntriesToReembedRow, LockSourceRow
from trapline.model import JobId, OrganisationId, SourceId
from trapline.pipeline.ingest.index_task import IndexTasks
from trapline.pipeline.kinds import INGEST, REEMBED, ReembedSource, ingest_kinds
from trapline.pipeline.sql import sources
from trapline.queue import jobs
from trapline.queue.finish import NewEvent, TaskResult
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.retry_policy import Skip
from trapline.queue.tasks import NewTask, Task

_AT_ONCE: Final = 20
# After everything that people ask for.
_BACKGROUND: Final = 100
_SOURCES_AT_ONCE: Final = 200
# Re-embedding takes long: two at a time leave the rest of a worker to other tasks.
_GATE: Final = Gate("kind:renew", bound=2)
_RETRY_AFTER: Final = timedelta(minutes=10)


async def queue_reembedding(
    conn: Connection,
    organisation_id: OrganisationId,
    configs: Mapping[SourceId, IngestConfig],
    *,
    priority: int = 0,
) -> JobId:
    """Queue tasks that re-embed sources with new configs; Conflict if all have such a task."""
    rows = await queries.lock_for_reembedding(conn, source_ids=sorted(configs))
    open_jobs = set(
        await sources.open_jobs(
            conn, job_ids=[row.renewal_job_id for row in rows if row.renewal_job_id is not None]
        )
    )
    idle = {row.source_id: row for row in rows if row.renewal_job_id not in open_jobs}
    if not idle:
        raise Conflict("That is under way already.")
    job = NewJob(INGEST, organisation_id, priority=priority, metadata={"renewal": True})
    # Texts of an earlier, unfinished re-embedding have another config.
    await queries.drop_later_generations(conn, source_ids=list(idle))
    await queries.begin_reembedding(conn, source_ids=list(idle), job_id=job.id)
    tasks = [
        NewTask(
            REEMBED, ReembedSource(source_id, row.generation + 1, configs[source_id]), gate=_GATE
        )
        for source_id, row in idle.items()
    ]
    await jobs.submit(conn, Kinds(ingest_kinds()), job, tasks, now=datetime.now(UTC))
    return job.id


@dataclass(slots=True)
class ReembedTask:
    """The task handler."""

    database: Database
    index_tasks: IndexTasks

    async def run(self, task: Task) -> TaskResult:
        """Write the texts that the new generation lacks, then swap the generations."""
        payload: ReembedSource = task.payload
        written = 0
        while True:
            async with self.database.system_tx() as conn:
                row = await queries.lock_source(conn, source_id=payload.source_id)
                if row is None:
                    raise Skip("The source was deleted.")
                if row.generation >= payload.generation:
                    break
                entries = await queries.entries_to_reembed(
                    conn,
                    source_id=payload.source_id,
                    present=row.generation,
                    target=payload.generation,
                    most=_AT_ONCE,
                )
                if not entries:
                    await _swap(conn, row, payload)
                    break
            await self._write(row, payload, entries)
            written += len(entries)
        result = {"source_id": str(payload.source_id), "texts": written, "status": "completed"}
        return TaskResult(result, events=[NewEvent("renewed", result)])

    async def _write(
        self, source: LockSourceRow, payload: ReembedSource, entries: Sequence[EntriesToReembedRow]
    ) -> None:
        place = SourceGeneration(source.organisation_id, source.source_id, payload.generation)
        texts = []
        for entry in entries:
            text, model = await self.index_tasks.embed_text(
                place, payload.config, _entry(entry), await self._markdown(entry)
            )
            texts.append(text)
        async with self.database.system_tx() as conn:
            await passage_index.store_entries(conn, place, texts, model)

    async def _markdown(self, row: EntriesToReembedRow) -> str:
        if row.markdown is not None or row.version_id is None:
            return row.markdown or ""
        async with self.database.system_tx() as conn:
            version = await sources.version_text(conn, version_id=row.version_id)
        return "" if version is None else version.markdown


async def _swap(conn: Connection, row: LockSourceRow, payload: ReembedSource) -> None:
    await queries.drop_stray_entries(
        conn, source_id=row.source_id, present=row.generation, target=payload.generation
    )
    config = msgspec.to_builtins(payload.config)
    await queries.set_config(conn, source_id=row.source_id, config=config)
    await passage_index.swap_generation(conn, row.source_id, payload.generation)


def _entry(row: EntriesToReembedRow) -> IndexEntry:
    return IndexEntry(
        uri=row.uri,
        content_hash=row.content_hash,
        path=row.path,
        title=row.title,
        language=row.language,
        content_type=row.content_type,
        page_id=row.page_id,
        version_id=row.version_id,
        markdown=row.markdown,
        dated_at=row.dated_at,
    )


async def reembed_outdated(database: Database) -> int:
    """Queue the re-embedding of sources whose model is not the default one; passages keep their size."""
    config = default_config(database.settings.embedding)
    if config.model == STATIC:
        return 0  # It is the weakest model: no source gains by it.
    Embedders(database.settings.embedding).named(config.model)
    async with database.system_tx() as conn:
        rows = await sources.sources_to_upgrade(
            conn, model=config.model, after=_RETRY_AFTER, most=_SOURCES_AT_ONCE
        )
        configs: dict[OrganisationId, dict[SourceId, IngestConfig]] = {}
        for row in rows:
            stored = read_config(row.config, config)
            better = msgspec.structs.replace(stored, model=config.model)
            configs.setdefault(row.organisation_id, {})[row.source_id] = better
        for organisation_id, new in sorted(configs.items()):
            await queue_reembedding(conn, organisation_id, new, priority=_BACKGROUND)
    return len(rows)


def duties() -> list[Duty]:
    return [Duty("embedding upgrade", reembed_outdated, timedelta(minutes=1))]
