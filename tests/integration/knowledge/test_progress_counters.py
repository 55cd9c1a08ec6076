"""Counts that many remove at the same time: jobs that end, applications that go, maintenance."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge import progress_counters
from trapline.knowledge.progress_counters import CounterChange
from trapline.model import JobId, OrganisationId

MINUTES = 200


async def counted(
    database: Database, organisation_id: OrganisationId, scopes: list[UUID], job_id: JobId
) -> None:
    """Rows of each scope by turns, so that whoever removes one scope's meets the others'."""
    now = datetime.now(UTC)
    async with database.system_tx() as conn:
        await progress_counters.add(
            conn,
            [
                CounterChange(
                    organisation_id, scope, job_id, now - timedelta(minutes=minute), total=1
                )
                for minute in range(MINUTES)
                for scope in scopes
            ],
        )


async def closed(database: Database, job_id: JobId) -> None:
    async with database.system_tx() as conn:
        await progress_counters.close_job(conn, job_id)


async def forgotten(database: Database, scopes: list[UUID]) -> None:
    async with database.system_tx() as conn:
        await progress_counters.delete(conn, scopes)


async def test_whoever_removes_counts_waits_for_no_one_who_waits_for_him(
    database: Database,
) -> None:
    async with database.system_tx() as conn:
        organisation_id = await tenancy.ensure_default(conn)
    for _ in range(10):
        scopes, job_id = [uuid4() for _ in range(3)], JobId(uuid4())
        for part in (scopes, scopes[::-1]):
            await counted(database, organisation_id, part, job_id)
            await progress_counters.roll_up(database)
        await counted(database, organisation_id, scopes, job_id)
        await asyncio.gather(
            closed(database, job_id),
            progress_counters.roll_up(database),
            forgotten(database, scopes),
            forgotten(database, scopes[::-1]),
            closed(database, job_id),
        )
        await forgotten(database, scopes)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.tally") == 0
