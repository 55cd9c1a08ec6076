"""Fills a database with many rows, in bulk."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.conformance.documents.statements import read
from trapline.app.duties import MEASUREMENTS
from trapline.db import tenancy
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue.maintenance import partitions

FINISHED, QUEUED, JOBS, MEASURED = 10_000_000, 5_000_000, 1_000_000, 20_000_000
OPEN, ORGANISATIONS, DAYS = 500, 10, 90
_PATIENCE: Final = 3600.0
_FILL: Final = read(Path(__file__).parent / "fill.sql")
# Those whose indexes would be written row by row in an order that is not theirs.
_INDEXED_AFTER: Final = [
    "queue.job", "queue.task", "queue.done", "queue.dead_letter", "store.version",
]  # fmt: skip


@dataclass(slots=True)
class Filled:
    """What there is, and of whom."""

    organisations: list[OrganisationId]
    counts: dict[str, int] = field(default_factory=dict)
    bytes_a_row: dict[str, float] = field(default_factory=dict)
    crawl: JobId | None = None

    @property
    def owner(self) -> OrganisationId:
        """One of ten that have equally many rows."""
        return self.organisations[3]


async def fill(database: Database, share: float) -> Filled:
    """Write that share of the whole, spread over 90 days; then let PostgreSQL look at it."""
    async with database.system_tx() as conn:
        found = Filled(
            [
                (await tenancy.create_organisation(conn, f"Organisation {n}")).id
                for n in range(ORGANISATIONS)
            ]
        )
    async with _bulk(database) as first, _bulk(database) as second:
        await asyncio.gather(
            _fill_queue(first, found.organisations, share),
            _fill_measurements(second, found.organisations, share),
        )
        await _run(first, "job times")
    async with database.owner() as conn:
        await conn.execute("SET statement_timeout = 0; SET maintenance_work_mem = '1GB'")
        await conn.execute("VACUUM (ANALYZE, PARALLEL 0)", timeout=_PATIENCE)
        await _look(conn, found)
    return found


async def found_in(database: Database) -> Filled | None:
    """Return what a database was filled with before; None when it was not."""
    async with database.owner() as conn:
        rows = await conn.fetch(_FILL["organisations"])
        if not rows:
            return None
        found = Filled([OrganisationId(row["id"]) for row in rows])
        await _look(conn, found)
    return found


async def _look(conn: OwnConnection, found: Filled) -> None:
    await conn.execute("SET statement_timeout = 0")
    found.bytes_a_row = {
        row["relname"]: row["bytes"] / row["rows"] for row in await conn.fetch(_FILL["sizes"])
    }
    counts = await conn.fetchrow(_FILL["counts"], timeout=_PATIENCE)
    assert counts is not None
    found.counts = dict(counts)
    found.crawl = await conn.fetchval(_FILL["a crawl"], found.owner)


@asynccontextmanager
async def _bulk(database: Database) -> AsyncIterator[OwnConnection]:
    """A connection on which no trigger and no foreign key looks at each row."""
    async with database.owner() as conn:
        await conn.execute(
            "SET statement_timeout = 0; SET session_replication_role = replica;"
            " SET work_mem = '256MB'; SET maintenance_work_mem = '512MB'"
        )
        yield conn


async def _run(conn: OwnConnection, name: str, *arguments: Any) -> None:
    await conn.execute(_FILL[name], *arguments, timeout=_PATIENCE)


async def _fill_queue(conn: OwnConnection, owners: Sequence[OrganisationId], share: float) -> None:
    indexes = await conn.fetch(_FILL["plain indexes"], _INDEXED_AFTER)
    for index in indexes:
        await conn.execute(f"DROP INDEX {index['name']}")
    await _run(conn, "applications", owners)
    await _run(conn, "sources", owners)
    await _run(conn, "jobs", int(JOBS * share), owners)
    await _run(conn, "open jobs", OPEN, owners, int(QUEUED * share) // OPEN)
    await _run(conn, "tally")
    await conn.execute("CREATE INDEX filling ON queue.job (created_at); ANALYZE queue.job")
    now = datetime.now(UTC)
    for day in range(DAYS, -1, -1):
        span = now - timedelta(days=day + 1), now - timedelta(days=day)
        await _run(conn, "finished", *span)
        await _run(conn, "queued", *span)
    await conn.execute("DROP INDEX queue.filling; ANALYZE queue.task; ANALYZE queue.done")
    await _run(conn, "versions")
    for index in indexes:
        await conn.execute(index["definition"], timeout=_PATIENCE)


async def _fill_measurements(
    conn: OwnConnection, owners: Sequence[OrganisationId], share: float
) -> None:
    for log in (*MEASUREMENTS, *partitions.QUEUE_LOGS):
        for month in partitions.months_after(datetime.now(UTC) - timedelta(days=DAYS + 31), 6):
            await partitions.make_month(conn, log, month)
    await _run(conn, "operations", int(MEASURED * share * 0.75), owners)
    await _run(conn, "requests", int(MEASURED * share * 0.25), owners)
    await _run(conn, "past jobs", int(JOBS * share), owners)
