"""Making a source's texts anew with another config, beside the old ones, which are found until then.

A renewal is one task. It writes some texts at a time and begins where it was interrupted; the last
step exchanges the generations, in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.knowledge import indexing
from trapline.knowledge.config import IngestConfig, read_config
from trapline.knowledge.embedding.embedders import STATIC, Embedders, default_config
from trapline.knowledge.indexing import Entry
from trapline.knowledge.indexing import Place as Shelf
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import EntriesToRenewRow, LockSourceRow
from trapline.model import JobId, OrganisationId, SourceId
from trapline.pipeline.ingesting import Ingesting
from trapline.pipeline.kinds import INGEST, RENEW, RenewTask, ingest_kinds
from trapline.pipeline.sql import ingestion
from trapline.queue import jobs
from trapline.queue.finishing import Finished, NewEvent
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.maintenance.duty import Duty
from trapline.queue.retries import Skip
from trapline.queue.tasks import NewTask, Task

_AT_ONCE: Final = 20
# Whatever people ask for comes first.
_BACKGROUND: Final = 100
_SOURCES_AT_ONCE: Final = 200
# A renewal computes for long: few at a time leave the rest of a worker to what is waited for.
_GATE: Final = Gate("kind:renew", bound=2)
_AGAIN_AFTER: Final = timedelta(minutes=10)


async def renew(
    conn: Connection,
    organisation_id: OrganisationId,
    wanted: Mapping[SourceId, IngestConfig],
    *,
    priority: int = 0,
) -> JobId:
    """Queue the renewal of sources, each with another config; Conflict if all are being renewed."""
    rows = await queries.lock_for_renewal(conn, source_ids=sorted(wanted))
    under_way = set(
        await ingestion.open_jobs(
            conn, job_ids=[row.renewal_job_id for row in rows if row.renewal_job_id is not None]
        )
    )
    begun = {row.source_id: row for row in rows if row.renewal_job_id not in under_way}
    if not begun:
        raise Conflict("That is under way already.")
    job = NewJob(INGEST, organisation_id, priority=priority, metadata={"renewal": True})
    # What another config made must not be mixed with this one's.
    await queries.drop_later_generations(conn, source_ids=list(begun))
    await queries.begin_renewal(conn, source_ids=list(begun), job_id=job.id)
    new = [
        NewTask(RENEW, RenewTask(source_id, row.generation + 1, wanted[source_id]), gate=_GATE)
        for source_id, row in begun.items()
    ]
    await jobs.submit(conn, Kinds(ingest_kinds()), job, new, now=datetime.now(UTC))
    return job.id


@dataclass(slots=True)
class Renewing:
    """The handler that renews."""

    database: Database
    ingesting: Ingesting

    async def run(self, task: Task) -> Finished:
        """Write what the new generation lacks, then exchange the generations."""
        payload: RenewTask = task.payload
        written = 0
        while True:
            async with self.database.system_tx() as conn:
                row = await queries.lock_source(conn, source_id=payload.source_id)
                if row is None:
                    raise Skip("The source was deleted.")
                if row.generation >= payload.generation:
                    break
                some = await queries.entries_to_renew(
                    conn,
                    source_id=payload.source_id,
                    present=row.generation,
                    target=payload.generation,
                    most=_AT_ONCE,
                )
                if not some:
                    await _exchange(conn, row, payload)
                    break
            await self._write(row, payload, some)
            written += len(some)
        told = {"source_id": str(payload.source_id), "texts": written, "status": "completed"}
        return Finished(told, events=[NewEvent("renewed", told)])

    async def _write(
        self, row: LockSourceRow, payload: RenewTask, some: Sequence[EntriesToRenewRow]
    ) -> None:
        place = Shelf(row.organisation_id, row.source_id, payload.generation)
        texts = []
        for one in some:
            text, model = await self.ingesting.text(
                place, payload.config, _entry(one), await self._markdown(one)
            )
            texts.append(text)
        async with self.database.system_tx() as conn:
            await indexing.store_entries(conn, place, texts, model)

    async def _markdown(self, row: EntriesToRenewRow) -> str:
        if row.markdown is not None or row.version_id is None:
            return row.markdown or ""
        async with self.database.system_tx() as conn:
            version = await ingestion.version_text(conn, version_id=row.version_id)
        return "" if version is None else version.markdown


async def _exchange(conn: Connection, row: LockSourceRow, payload: RenewTask) -> None:
    await queries.drop_stray_entries(
        conn, source_id=row.source_id, present=row.generation, target=payload.generation
    )
    config = msgspec.to_builtins(payload.config)
    await queries.set_config(conn, source_id=row.source_id, config=config)
    await indexing.swap(conn, row.source_id, payload.generation)


def _entry(row: EntriesToRenewRow) -> Entry:
    return Entry(
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


async def upgrade(database: Database) -> int:
    """Renew, in the background, sources that another model than the present one was used for. How
    each is cut stays as it is.
    """
    config = default_config(database.settings)
    if config.model == STATIC:
        return 0  # It is the lightest: nothing is made better by it.
    Embedders(database.settings).named(config.model)
    async with database.system_tx() as conn:
        rows = await ingestion.sources_to_upgrade(
            conn, model=config.model, after=_AGAIN_AFTER, most=_SOURCES_AT_ONCE
        )
        owners: dict[OrganisationId, dict[SourceId, IngestConfig]] = {}
        for row in rows:
            own = read_config(row.config, config)
            better = msgspec.structs.replace(own, model=config.model)
            owners.setdefault(row.organisation_id, {})[row.source_id] = better
        for owner, wanted in sorted(owners.items()):
            await renew(conn, owner, wanted, priority=_BACKGROUND)
    return len(rows)


def duties() -> list[Duty]:
    return [Duty("embedding upgrade", upgrade, timedelta(minutes=1))]
