"""Reindex: bloated indexes are rebuilt concurrently, without blocking anyone."""

from datetime import timedelta

from trapline.db.pool import Database
from trapline.logs import get_logger
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import maintenance as queries
from trapline.settings import Settings

log = get_logger(__name__)


async def rebuild(database: Database, *, least_bytes: int | None = None) -> int:
    """Rebuild bloated indexes, one after the other."""
    least_bytes = database.settings.queue.reindex_bytes if least_bytes is None else least_bytes
    async with database.owner() as conn:
        bloated = await queries.bloated_indexes(conn, least_bytes=least_bytes)
        for index in bloated:
            log.info("an index is rebuilt", index=index.name, bytes=index.bytes)
            # The name comes from the catalog, quoted by regclass.
            await conn.execute(f"REINDEX INDEX CONCURRENTLY {index.name}")
    return len(bloated)


def duties(_: Settings) -> list[Duty]:
    return [Duty("index bloat", rebuild, timedelta(hours=1), longest=timedelta(hours=1))]
