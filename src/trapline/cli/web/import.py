"""`trapline import`."""  # noqa: N999 (a command has its own name)

from dataclasses import asdict
from pathlib import Path

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import InvalidInput
from trapline.pipeline.reports.warc_import import WarcImporter
from trapline.store.blobs import BlobStore


@click.command()
@click.argument(
    "files", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(database: Database, files: tuple[Path, ...], org: str, as_json: bool) -> None:
    """Import pages from WARC files, plain or compressed, as visits at the time of their records.

    \b
    Example: trapline import crawl.warc.gz
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    importer = WarcImporter(database, BlobStore.of(database.settings.blobs), organisation_id)
    summaries = [{"file": str(path)} | asdict(await importer.run(path)) for path in files]
    terminal.show(summaries, as_json=as_json)
    broken = [row for row in summaries if row["error"] is not None]
    if broken:
        raise InvalidInput("; ".join(f"{row['file']}: {row['error']}" for row in broken))
