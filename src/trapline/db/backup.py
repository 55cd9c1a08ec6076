"""Backup and restore with pg_dump, pg_restore and psql of the embedded server."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from trapline.db import embedded
from trapline.db.schemas import LEDGER
from trapline.errors import InvalidInput, Unavailable

BackupPart = Literal["all", "schema", "data"]

# Row-level security stays on: as a member of the worker role the owner sees all rows, and only a
# superuser could switch it off.
_COMMON = ("--no-owner", "--enable-row-security")

# The pg_restore runs for each part. Tables without their ledger would be migrated again.
_RESTORE_RUNS: dict[BackupPart, tuple[tuple[str, ...], ...]] = {
    "all": ((),),
    "schema": (("--schema-only",), ("--data-only", f"--schema={LEDGER}")),
    "data": (("--data-only", f"--exclude-schema={LEDGER}"),),
}


async def backup(dsn: str, schemas: Sequence[str], target: Path, part: BackupPart = "all") -> None:
    """Write a compressed archive for `restore`. The file appears only when it is complete."""
    partial = target.with_name(target.name + ".partial")
    try:
        await _run(
            "pg_dump",
            "--format=custom",
            *_COMMON,
            *_selection(schemas, part),
            f"--file={partial}",
            f"--dbname={dsn}",
        )
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


async def restore(
    dsn: str, source: Path, part: BackupPart = "all", preparation: Sequence[str] = ()
) -> None:
    """Run the preparation and restore the archive in one transaction."""
    if not source.is_file():
        raise InvalidInput(f"There is no file {source}.")
    with tempfile.TemporaryDirectory(prefix="trapline-restore-") as directory:
        scripts = []
        for number, flags in enumerate(_RESTORE_RUNS[part]):
            script = Path(directory) / f"{number}.sql"
            await _run("pg_restore", *_COMMON, *flags, f"--file={script}", str(source))
            scripts.append(f"--file={script}")
        await _run(
            "psql",
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
            "--output=/dev/null",
            f"--dbname={dsn}",
            *(f"--command={statement}" for statement in preparation),
            *scripts,
        )


def _selection(schemas: Sequence[str], part: BackupPart) -> list[str]:
    if part == "data":
        chosen = [f"--schema={schema}" for schema in schemas if schema != LEDGER]
        return ["--data-only", *chosen]
    chosen = [f"--schema={schema}" for schema in schemas]
    if part == "schema":
        chosen += [f"--exclude-table-data={schema}.*" for schema in schemas if schema != LEDGER]
    return chosen


async def _run(program: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        str(embedded.binary(program)), *arguments, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    if process.returncode:
        raise Unavailable(f"{program} failed: {errors.decode(errors='replace').strip()}")
