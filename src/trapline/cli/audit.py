"""`trapline audit`: every counter and slot, recomputed from the rows."""

from dataclasses import asdict

import click

from trapline.cli import terminal
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.queue.audit import audit


@click.command()
@terminal.json_option
@terminal.with_database
async def command(database: Database, as_json: bool) -> None:
    """Recompute every counter and slot from the rows; exit status 1 when one is off.

    \b
    Example: trapline audit --json
    """
    async with database.system_tx() as conn:
        # All queries must see the same moment, or work in progress looks like a difference.
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        differences = await audit(conn)
    terminal.show(
        [asdict(difference) for difference in differences],
        as_json=as_json,
        empty="All counters agree with the rows.",
    )
    if differences:
        raise TraplineError(f"{len(differences)} counters differ from the rows.")
