"""Deliveries that nobody asks for any more."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.deliver.sql import webhooks as queries

# Long enough to find out what a receiver was told; failures are kept as long as logs are.
KEEP_DELIVERED: Final = timedelta(days=3)


async def drop(database: Database) -> int:
    """Delete what is past its time."""
    async with database.system_tx() as conn:
        received = await queries.drop_delivered(conn, keep=KEEP_DELIVERED)
        keep = timedelta(days=database.settings.keep_days)
        return received + await queries.drop_endpoints(conn, keep=keep)
