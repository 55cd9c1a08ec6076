"""`trapline audit`: every counter and slot recomputed from the rows, every blob looked for."""

from dataclasses import asdict
from datetime import timedelta

import click

from trapline.cli import terminal
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.queue import audit as counters
from trapline.store import sweeping
from trapline.store.blobs import Blobs


@click.command()
@terminal.json_option
@terminal.with_database
async def command(database: Database, as_json: bool) -> None:
    """Recompute every counter and slot from the rows, and look for bytes that are missing or that
    nothing names; exit status 1 when something is off.

    \b
    Example: trapline audit --json
    """
    settings = database.settings
    grace = timedelta(hours=settings.blob_grace_hours)
    async with database.system_tx() as conn:
        # All queries must see the same moment, or work in progress looks like a difference.
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        differences = await counters.audit(conn)
        faults = await sweeping.audit(conn, Blobs.of(settings), grace)
    terminal.show(
        [
            *(asdict(difference) for difference in differences),
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
        empty="All counters agree with the rows, and all bytes are in their place.",
    )
    if differences or faults:
        raise TraplineError(
            f"{len(differences)} counters and {len(faults)} blobs are not as they should be."
        )
