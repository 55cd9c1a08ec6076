"""Backup and restore with PostgreSQL's own programs, which come with the embedded server."""

import asyncio
from pathlib import Path
from typing import Literal

from trapline.db import embedded
from trapline.errors import InvalidInput, Unavailable

Part = Literal["all", "schema", "data"]

_PART_FLAGS: dict[Part, tuple[str, ...]] = {
    "all": (),
    "schema": ("--schema-only",),
    "data": ("--data-only",),
}


async def backup(dsn: str, schemas: list[str], target: Path, part: Part = "all") -> None:
    """Write a compressed archive that `restore` reads. The file appears only when it is complete."""
    partial = target.with_name(target.name + ".partial")
    # Row-level security stays on for pg_dump: as member of the worker role the owner sees all rows.
    await _run(
        "pg_dump",
        "--format=custom",
        "--no-owner",
        "--enable-row-security",
        *(f"--schema={schema}" for schema in schemas),
        *_PART_FLAGS[part],
        f"--file={partial}",
        f"--dbname={dsn}",
    )
    partial.rename(target)


async def restore(dsn: str, source: Path, part: Part = "all") -> None:
    """Read an archive into the database, in one transaction: all of it or nothing."""
    if not source.is_file():
        raise InvalidInput(f"There is no file {source}.")
    await _run(
        "pg_restore",
        "--no-owner",
        "--enable-row-security",
        "--single-transaction",
        "--exit-on-error",
        *_PART_FLAGS[part],
        f"--dbname={dsn}",
        str(source),
    )


async def _run(program: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        str(embedded.binary(program)), *arguments, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await process.communicate()
    if process.returncode:
        raise Unavailable(f"{program} failed: {complaint.decode(errors='replace').strip()}")
