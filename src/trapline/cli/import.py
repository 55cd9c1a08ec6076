"""`trapline import`."""  # noqa: N999 (a command has its own name)

from dataclasses import asdict
from pathlib import Path

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import InvalidInput
from trapline.pipeline.importing import Importer
from trapline.store.blobs import Blobs


@click.command()
@click.argument(
    "files", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(database: Database, files: tuple[Path, ...], org: str, as_json: bool) -> None:
    """Take in pages from WARC files, plain or compressed, as if they had been visited back then.

    \b
    Example: trapline import crawl.warc.gz
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    importer = Importer(database, Blobs.of(database.settings), organisation_id)
    told = [{"file": str(path)} | asdict(await importer.run(path)) for path in files]
    terminal.show(told, as_json=as_json)
    broken = [row for row in told if row["error"] is not None]
    if broken:
        raise InvalidInput("; ".join(f"{row['file']}: {row['error']}" for row in broken))
