"""Maintenance: the duties of all packages, run by one process at a time."""

from datetime import timedelta

from trapline.archive.sql import rollups
from trapline.db.audit_trail import drop_old_entries
from trapline.db.pool import Database
from trapline.db.sessions import drop_old_sessions
from trapline.knowledge import progress_counters, vector_indexes
from trapline.knowledge.keyword.index_writer import compact_segments, merge_segments
from trapline.knowledge.passage_index import drop_older_generations
from trapline.knowledge.qdrant import Qdrant
from trapline.knowledge.qdrant_mirror import QdrantMirror
from trapline.knowledge.search import Searcher
from trapline.measure.recorder import drop_job_times
from trapline.measure.sql import rollups as measured_days
from trapline.pipeline import after_job, content_retention, job_templates
from trapline.pipeline.event_dispatch import duties as telling_duties
from trapline.pipeline.ingest import firecrawl_inbox as intakes
from trapline.pipeline.ingest import reembed
from trapline.pipeline.sites import site_operations
from trapline.queue.maintenance import loop as maintenance
from trapline.queue.maintenance import schedule_firing
from trapline.queue.maintenance.partitions import Log, duty
from trapline.queue.maintenance.periodic import Duty
from trapline.settings import Settings
from trapline.store import blob_gc
from trapline.store.blobs import BlobStore

# The logs of visits: their partitions are dropped together.
VISIT_LOGS = (
    Log("archive", "visit", "started_at", roll_up=rollups.roll_up_visits),
    *(Log("archive", table, "started_at") for table in ("request", "redirect", "file")),
)

MEASUREMENTS = (
    Log("measure", "operation", "recorded_at", roll_up=measured_days.roll_up_operations),
    Log("measure", "request", "recorded_at", roll_up=measured_days.roll_up_requests),
)


def all_duties(settings: Settings, blobs: BlobStore, searcher: Searcher) -> list[Duty]:
    """Return the maintenance of all packages."""
    return [
        *maintenance.all_duties(settings),
        *schedule_firing.duties(job_templates.create_scheduled_job),
        *content_retention.duties(),
        duty("archive partitions", VISIT_LOGS),
        duty("measurement partitions", MEASUREMENTS),
        Duty("sums of measurements", drop_job_times, every=timedelta(hours=1)),
        Duty("old sessions", drop_old_sessions, every=timedelta(hours=1)),
        Duty("old audit entries", drop_old_entries, every=timedelta(hours=1)),
        *after_job.duties(),
        *site_operations.duties(),
        *telling_duties(),
        *intakes.duties(),
        *reembed.duties(),
        _blob_sweep(blobs, settings),
        Duty("keyword index", merge_segments, every=timedelta(seconds=15)),
        Duty("ingestion tally", progress_counters.roll_up, every=timedelta(seconds=10)),
        Duty("hollow segments", compact_segments, every=timedelta(minutes=10)),
        Duty("older generations", drop_older_generations, every=timedelta(minutes=1)),
        Duty(
            "vector indexes",
            vector_indexes.maintain_indexes,
            every=timedelta(minutes=5),
            longest=vector_indexes.LONGEST,
        ),
        _qdrant_mirror(searcher.qdrant),
    ]


def _qdrant_mirror(qdrant: Qdrant | None) -> Duty:
    every = timedelta(hours=1) if qdrant is None else timedelta(seconds=2)
    work = QdrantMirror(qdrant).tend
    return Duty("vectors in Qdrant", work, every=every, longest=timedelta(minutes=10))


def _blob_sweep(blobs: BlobStore, settings: Settings) -> Duty:
    grace = timedelta(hours=settings.blobs.grace_hours)

    async def work(database: Database) -> int:
        return await blob_gc.sweep(database, blobs, grace)

    return Duty("blob sweep", work, every=timedelta(hours=1), longest=timedelta(hours=1))
