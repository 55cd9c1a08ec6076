"""`trapline audit`: recompute every counter, check every blob, find texts of deleted pages."""

from dataclasses import asdict
from datetime import timedelta

import click

from trapline.cli import terminal
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.knowledge.sql import sources as source_queries
from trapline.queue import audit as counters
from trapline.store import blob_gc
from trapline.store.blobs import BlobStore


@click.command()
@terminal.json_option
@terminal.with_database
async def command(database: Database, as_json: bool) -> None:
    """Recompute every counter and slot from the rows; find missing and unreferenced bytes, and texts
    that are searched though their page was deleted. Exit status 1 when something is off.

    \b
    Example: trapline audit --json
    """
    settings = database.settings
    grace = timedelta(hours=settings.blobs.grace_hours)
    async with database.system_tx() as conn:
        # All queries must see the same moment, or work in progress looks like a difference.
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        differences = await counters.audit(conn)
        orphans = await source_queries.orphaned_entries(conn)
        faults = await blob_gc.audit(conn, BlobStore.of(settings.blobs), grace)
    terminal.show(
        [
            *(asdict(difference) for difference in differences),
            *(
                {
                    "where": f"source {row.source_id}",
                    "what": "texts of deleted pages",
                    "counter": None,
                    "rows": row.entries,
                }
                for row in orphans
            ),
            *(
                {
                    "where": f"blob {fault.sha256}",
                    "what": fault.problem,
                    "counter": None,
                    "rows": None,
                }
                for fault in faults
            ),
        ],
        as_json=as_json,
        empty="All counters agree with the rows, all bytes are there, and all texts have their page.",
    )
    if differences or orphans or faults:
        raise TraplineError(
            f"{len(differences)} counters, {len(orphans)} sources and {len(faults)} blobs are wrong."
        )
