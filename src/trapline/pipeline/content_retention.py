"""Retention of content: versions by number and age, zero-retention content for an hour."""

from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue.maintenance.periodic import Duty
from trapline.store import zero_retention
from trapline.store.sql import retention as queries

_VERSIONS_AT_ONCE: Final = 5000


async def drop_versions(database: Database) -> int:
    """Delete the versions beyond the retention settings, in one transaction per batch."""
    settings, after, dropped = database.settings, 0, 0
    while True:
        async with database.system_tx() as conn:
            batch = await queries.drop_versions(
                conn,
                after=after,
                most=_VERSIONS_AT_ONCE,
                versions=settings.retention.keep_versions,
                days=settings.retention.keep_version_days,
            )
        dropped += batch.gone
        if batch.last is None:
            return dropped
        after = batch.last


async def drop_zero_retention(database: Database, now: datetime | None = None) -> int:
    """Drop zero-retention content after its hour."""
    async with database.owner() as conn:
        return await zero_retention.maintain_partitions(conn, now or datetime.now(UTC))


def duties() -> list[Duty]:
    return [
        Duty("zero data retention", drop_zero_retention, timedelta(minutes=1)),
        Duty("old versions", drop_versions, timedelta(hours=6), timedelta(hours=2)),
    ]
