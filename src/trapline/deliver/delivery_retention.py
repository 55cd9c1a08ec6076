"""Retention of deliveries."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.deliver.sql import webhooks as queries

# Long enough to see what a receiver got; failures are kept as long as logs.
KEEP_DELIVERED: Final = timedelta(days=3)


async def drop(database: Database) -> int:
    """Delete deliveries and endpoints past their retention."""
    async with database.system_tx() as conn:
        received = await queries.drop_delivered(conn, keep=KEEP_DELIVERED)
        keep = timedelta(days=database.settings.retention.keep_days)
        return received + await queries.drop_endpoints(conn, keep=keep)
