"""What is kept of content, and how long: versions by number and age, and what may leave no trace."""

from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db import pool
from trapline.db.pool import Database
from trapline.queue.maintenance.duty import Duty
from trapline.store import fleeting
from trapline.store.sql import retention as queries

_VERSIONS_AT_ONCE: Final = 5000


async def drop_versions(database: Database) -> int:
    """Go through all versions, a part in each transaction, and delete those past what is kept."""
    settings, after, gone = database.settings, 0, 0
    while True:
        async with database.system_tx() as conn:
            part = await queries.drop_versions(
                conn,
                after=after,
                most=_VERSIONS_AT_ONCE,
                versions=settings.keep_versions,
                days=settings.keep_version_days,
            )
        gone += part.gone
        if part.last is None:
            return gone
        after = part.last


async def drop_fleeting(database: Database, now: datetime | None = None) -> int:
    """Drop content of zero data retention when its hour is over."""
    async with pool.owner(database.dsn, database.settings) as conn:
        return await fleeting.keep_up(conn, now or datetime.now(UTC))


def duties() -> list[Duty]:
    return [
        Duty("zero data retention", drop_fleeting, timedelta(minutes=1)),
        Duty("old versions", drop_versions, timedelta(hours=6), timedelta(hours=2)),
    ]
