"""`trapline ingest PATH…`."""

import asyncio
import glob
import mimetypes
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import click

from trapline import app
from trapline.cli import terminal
from trapline.cli.job_progress import Display, pausing
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Conflict, NotFound
from trapline.knowledge import applications
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.source_config import read_config
from trapline.model import JobId, OrganisationId
from trapline.pipeline import after_job
from trapline.pipeline.ingest import uploads
from trapline.pipeline.ingest.uploads import (
    RegisteredUpload,
    RejectedFile,
    UploadCollector,
    UploadOwner,
)
from trapline.pipeline.reports.job_results import PageCounts
from trapline.pipeline.sql import sources as reads
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow
from trapline.store.blobs import BlobStore

_PIECE = 2**20
_LOOK_EVERY = 0.3
_SHOWN = 50
_FAILED = 1


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--app", "application", help="Application that the sources are for; made if new.")
@click.option("--chunk-tokens", type=int, help="Most tokens of a passage.")
@click.option("--chunk-overlap", type=int, help="Tokens that a passage repeats of the one before.")
@click.option("--no-wait", is_flag=True, help="Only queue them; a running worker does the rest.")
@click.option(
    "--resume", help="Go on with a job that was paused or killed, by id or its first digits."
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database,
    paths: tuple[str, ...],
    application: str | None,
    chunk_tokens: int | None,
    chunk_overlap: int | None,
    no_wait: bool,
    resume: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Make files searchable: PDF, office formats, books, pages, tables, notes.

    Folders are read with all that is in them; `**` in a quoted pattern matches folders at any depth.
    A file that is there already is recognised; one that changed is taken in again. Ctrl-C pauses.

    \b
    Example: trapline ingest notes 'reports/**/*.pdf' --app support
    """
    if bool(paths) == (resume is not None):
        raise click.UsageError("Give paths, or --resume with the id of a job.")
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    refused: list[RejectedFile] = []
    stored = 0
    if resume is None:
        config = {"chunk_tokens": chunk_tokens, "chunk_overlap": chunk_overlap}
        owner = await _owner(database, organisation_id, application, config)
        registered, refused = await _take_in(database, owner, paths)
        job_id = registered.job_id
        stored = len(registered.files) - registered.queued
    else:
        job_id = await _resumed(database, organisation_id, resume)
    job = None
    if job_id is not None:
        async with database.tenant_tx(organisation_id) as conn:
            job = await jobs.get(conn, job_id)
        if not no_wait:
            job = await _follow(database, organisation_id, job_id, quiet=as_json)
    await _close(database, organisation_id, job, refused, stored, as_json=as_json)


async def _owner(
    database: Database,
    organisation_id: OrganisationId,
    application: str | None,
    sizes: dict[str, int | None],
) -> UploadOwner:
    config = read_config(
        {name: value for name, value in sizes.items() if value is not None},
        default_config(database.settings.embedding),
    )
    if application is None:
        return UploadOwner(organisation_id, config)
    async with database.tenant_tx(organisation_id) as conn:
        try:
            row = await applications.find(conn, organisation_id, application)
        except NotFound:
            row = await applications.create(conn, organisation_id, application)
    return UploadOwner(organisation_id, config, row.id)


async def _take_in(
    database: Database, owner: UploadOwner, paths: tuple[str, ...]
) -> tuple[RegisteredUpload, list[RejectedFile]]:
    """Store the bytes of all files, then queue them in one job."""
    settings = database.settings
    collecting = UploadCollector(database, BlobStore.of(settings.blobs), settings.uploads)
    try:
        for path, name in files_of(paths, collecting.rejected):
            media, _ = mimetypes.guess_type(path.name)
            await collecting.add(
                name, _pieces(path), content_type=media, uri=path.absolute().as_uri()
            )
        await collecting.flush()
    finally:
        collecting.close()
    if not collecting.files:
        return RegisteredUpload([], None), collecting.rejected
    async with database.tenant_tx(owner.organisation_id) as conn:
        return await uploads.register(conn, owner, collecting.files, settings), collecting.rejected


def files_of(paths: tuple[str, ...], refused: list[RejectedFile]) -> Iterator[tuple[Path, str]]:
    """Yield each file that paths and patterns match once, with its name."""
    seen: set[Path] = set()
    for pattern in paths:
        matches = [pattern]
        if not Path(pattern).exists():
            matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (it may be absolute)
        if not matches:
            refused.append(RejectedFile(pattern, "There is no such file."))
        for one in matches:
            for path, name in _below(Path(one)):
                if path.absolute() not in seen:
                    seen.add(path.absolute())
                    yield path, name


def _below(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or all visible files of a folder; do not follow links that leave it."""
    if not path.is_dir():
        yield path, path.name
        return
    for one in sorted(path.rglob("*")):
        inside = one.relative_to(path)
        hidden = any(part.startswith(".") for part in inside.parts)
        if not hidden and one.is_file() and not one.is_symlink():
            yield one, f"{path.resolve().name}/{inside.as_posix()}"


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece


async def _resumed(database: Database, organisation_id: OrganisationId, prefix: str) -> JobId:
    async with database.tenant_tx(organisation_id) as conn:
        job = await jobs.get(conn, await jobs.find_id(conn, prefix))
        if job.status in jobs.ENDED:
            raise Conflict(f"That job has {job.status}.")
        if job.status == "paused":
            await jobs.resume(conn, job.id)
    return job.id


async def _follow(
    database: Database, organisation_id: OrganisationId, job_id: JobId, *, quiet: bool
) -> JobRow:
    """Work until the job has ended or is paused, and show its progress."""
    async with app.run_worker(database, database.settings, name="ingest"), pausing() as paused:
        with Display("files", quiet=quiet) as display:
            while True:
                async with database.tenant_tx(organisation_id) as conn:
                    job = await jobs.get(conn, job_id)
                    if paused.is_set() and job.status not in jobs.ENDED:
                        await jobs.pause(conn, job_id, by="Ctrl-C")
                        job = await jobs.get(conn, job_id)
                display.show(job, _counts(job))
                if job.status in jobs.ENDED or job.status == "paused":
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY):
                        await paused.wait()
    await after_job.catch_up(database)
    return job


def _counts(job: JobRow) -> PageCounts:
    """Every task of the job is a file."""
    return PageCounts(job.completed, job.remaining, job.failed, job.skipped)


async def _close(
    database: Database,
    organisation_id: OrganisationId,
    job: JobRow | None,
    refused: list[RejectedFile],
    stored: int,
    *,
    as_json: bool,
) -> None:
    """Print how many files were indexed, and why others failed."""
    failed = []
    if job is not None:
        async with database.tenant_tx(organisation_id) as conn:
            failed = await reads.failed_files(conn, job_id=job.id)
    if as_json:
        terminal.show_json(
            {
                "job": job,
                "recognised": stored,
                "refused": [{"name": one.name, "error": one.error} for one in refused],
                "failed": failed,
            }
        )
    else:
        _say(
            job, stored, [(r.name, r.error) for r in refused] + [(f.name, f.error) for f in failed]
        )
    if job is not None and job.status == "paused":
        click.echo(f"\nPaused. Go on with: trapline ingest --resume {job.id}", err=True)
        raise click.exceptions.Exit(130)
    if refused or failed:
        raise click.exceptions.Exit(_FAILED)


def _say(job: JobRow | None, stored: int, wrong: list[tuple[str, str]]) -> None:
    if job is not None:
        click.echo(
            f"\nJob {job.id} {job.status}: {job.completed} files in, {job.failed} failed,"
            f" {job.remaining} to go."
        )
    if stored:
        click.echo(f"{stored} {'file was' if stored == 1 else 'files were'} there already.")
    if wrong:
        click.echo(f"\nNot in ({len(wrong)}):")
        for name, error in wrong[:_SHOWN]:
            click.echo(f"  {name}\n    {error}")
    if len(wrong) > _SHOWN:
        click.echo(f"  and {len(wrong) - _SHOWN} more; see them all with --json")
