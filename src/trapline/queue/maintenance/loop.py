"""The maintenance loop: the process that holds the advisory lock runs all duties, each at its interval."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

import asyncpg

from trapline.db.connection import LOST, OwnConnection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.queue.maintenance import (
    dead_workers,
    deadlines,
    job_expiry,
    lane_cleanup,
    partitions,
    reindex,
    row_retention,
    statistics_rollup,
)
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import maintenance as queries
from trapline.settings import Settings

log = get_logger(__name__)

LOCK: Final = 0x71_6D_61_69_6E_74  # "qmaint"
_TRY_AGAIN: Final = 3.0
# A duty is first done after this part of the time between two, between so many seconds: nothing of it
# need be done in the first moments, when the process has tasks to begin and PostgreSQL their plans to make.
_FIRST_PART: Final = 1 / 30
_EARLIEST_FIRST: Final = 0.5
_LATEST_FIRST: Final = 3.0
# Duties of one moment come one after the other: at once they would need a connection each, and every
# connection pays for its own plans.
_BETWEEN_FIRST: Final = 0.1


def all_duties(settings: Settings) -> list[Duty]:
    modules = (
        dead_workers,
        deadlines,
        lane_cleanup,
        job_expiry,
        row_retention,
        partitions,
        statistics_rollup,
        reindex,
    )
    return [duty for module in modules for duty in module.duties(settings)]


async def run(database: Database, duties: Iterable[Duty] | None = None) -> None:
    """Be ready to maintain for ever; do so while this process holds the lock."""
    chosen = all_duties(database.settings) if duties is None else list(duties)
    while True:
        try:
            await _lead(database, chosen)
        except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
            log.warning("maintenance waits for PostgreSQL", error=str(error))
        await asyncio.sleep(_TRY_AGAIN)


async def _lead(database: Database, duties: list[Duty]) -> None:
    conn = await database.dedicated("maintenance lock")
    try:
        if not await conn.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
            return
        log.info("maintenance begins")
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_repeat(database, duty, delay), name=duty.name)
                for duty, delay in zip(duties, first_delays(duties), strict=True)
            ]
            await _until_lost(conn)
            for task in tasks:
                task.cancel()
    finally:
        await conn.close()


async def _until_lost(conn: OwnConnection) -> None:
    """Return when the lock went with its connection."""
    lost = asyncio.Event()
    conn.add_termination_listener(lambda _: lost.set())
    if not conn.is_closed():
        await lost.wait()


def first_delays(duties: Sequence[Duty]) -> list[float]:
    """Return after how many seconds each duty is first done."""
    delays: list[float] = []
    together: Counter[float] = Counter()
    for duty in duties:
        part = duty.every.total_seconds() * _FIRST_PART
        moment = min(max(part, _EARLIEST_FIRST), _LATEST_FIRST)
        delays.append(moment + together[moment] * _BETWEEN_FIRST)
        together[moment] += 1
    return delays


async def _repeat(database: Database, duty: Duty, delay: float) -> None:
    await asyncio.sleep(delay)
    while True:
        await perform(database, duty)
        await asyncio.sleep(duty.every.total_seconds())


async def perform(database: Database, duty: Duty) -> int:
    """Run a duty once, within its time; its failure does not affect the others."""
    began, did, failure = time.monotonic(), 0, None
    try:
        async with asyncio.timeout(duty.longest.total_seconds()):
            did = await duty.work(database)
    except Exception as error:
        failure = repr(error)
        log.exception("a duty failed", duty=duty.name)
    took = timedelta(seconds=time.monotonic() - began)
    try:
        await database.run_statement(
            lambda conn: queries.record_duty(
                conn, name=duty.name, took=took, did=did, error=failure
            )
        )
    except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
        log.warning("a duty was not recorded", duty=duty.name, error=str(error))
    return did
