"""`trapline ingest PATH…`."""

import asyncio
import glob
import mimetypes
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import click

from trapline import app
from trapline.cli import terminal
from trapline.cli.following import Display, pausing
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Conflict, NotFound
from trapline.knowledge import applications
from trapline.knowledge.config import read_config
from trapline.knowledge.embedding.embedders import default_config
from trapline.model import JobId, OrganisationId
from trapline.pipeline import followups, uploads
from trapline.pipeline.results import Counts
from trapline.pipeline.sql import ingestion as reads
from trapline.pipeline.uploads import Collecting, Owner, Refused, Registered
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow
from trapline.store.blobs import Blobs

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
@click.option("--resume", type=click.UUID, help="Go on with a job that was paused or killed.")
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
    resume: UUID | None,
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
    refused: list[Refused] = []
    known = 0
    if resume is None:
        given = {"chunk_tokens": chunk_tokens, "chunk_overlap": chunk_overlap}
        owner = await _owner(database, organisation_id, application, given)
        registered, refused = await _take_in(database, owner, paths)
        job_id = registered.job_id
        known = len(registered.taken) - registered.queued
    else:
        job_id = await _resumed(database, organisation_id, JobId(resume))
    job = None
    if job_id is not None:
        async with database.tenant_tx(organisation_id) as conn:
            job = await jobs.get(conn, job_id)
        if not no_wait:
            job = await _follow(database, organisation_id, job_id, quiet=as_json)
    await _close(database, organisation_id, job, refused, known, as_json=as_json)


async def _owner(
    database: Database,
    organisation_id: OrganisationId,
    application: str | None,
    given: dict[str, int | None],
) -> Owner:
    config = read_config(
        {name: value for name, value in given.items() if value is not None},
        default_config(database.settings),
    )
    if application is None:
        return Owner(organisation_id, config)
    async with database.tenant_tx(organisation_id) as conn:
        try:
            row = await applications.find(conn, organisation_id, application)
        except NotFound:
            row = await applications.create(conn, organisation_id, application)
    return Owner(organisation_id, config, row.id)


async def _take_in(
    database: Database, owner: Owner, paths: tuple[str, ...]
) -> tuple[Registered, list[Refused]]:
    """Store the bytes of all files, then queue them together."""
    settings = database.settings
    collecting = Collecting(database, Blobs.of(settings), settings)
    try:
        for path, name in files_of(paths, collecting.refused):
            media, _ = mimetypes.guess_type(path.name)
            await collecting.add(
                name, _pieces(path), content_type=media, uri=path.absolute().as_uri()
            )
        await collecting.flush()
    finally:
        collecting.close()
    if not collecting.files:
        return Registered([], None), collecting.refused
    async with database.tenant_tx(owner.organisation_id) as conn:
        return await uploads.register(conn, owner, collecting.files, settings), collecting.refused


def files_of(paths: tuple[str, ...], refused: list[Refused]) -> Iterator[tuple[Path, str]]:
    """Give the files that paths and patterns mean, once each, with what each is called."""
    seen: set[Path] = set()
    for given in paths:
        found = [given] if Path(given).exists() else sorted(glob.glob(given, recursive=True))  # noqa: PTH207 (a pattern may be absolute)
        if not found:
            refused.append(Refused(given, "There is no such file."))
        for one in found:
            for path, name in _below(Path(one)):
                if path.absolute() not in seen:
                    seen.add(path.absolute())
                    yield path, name


def _below(path: Path) -> Iterator[tuple[Path, str]]:
    """Give a file, or all files of a folder that are not hidden; links out of it are not followed."""
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


async def _resumed(database: Database, organisation_id: OrganisationId, job_id: JobId) -> JobId:
    async with database.tenant_tx(organisation_id) as conn:
        job = await jobs.get(conn, job_id)
        if job.status in jobs.ENDED:
            raise Conflict(f"That job has {job.status}.")
        if job.status == "paused":
            await jobs.resume(conn, job.id)
    return job_id


async def _follow(
    database: Database, organisation_id: OrganisationId, job_id: JobId, *, quiet: bool
) -> JobRow:
    """Work until the job has ended or is paused, and show how it gets on."""
    async with app.working(database, database.settings, name="ingest"), pausing() as paused:
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
    await followups.catch_up(database)
    return job


def _counts(job: JobRow) -> Counts:
    """Every task of the job is a file."""
    return Counts(job.completed, job.remaining, job.failed, job.skipped)


async def _close(
    database: Database,
    organisation_id: OrganisationId,
    job: JobRow | None,
    refused: list[Refused],
    known: int,
    *,
    as_json: bool,
) -> None:
    """Say what is in, what failed and why."""
    failed = []
    if job is not None:
        async with database.tenant_tx(organisation_id) as conn:
            failed = await reads.failed_files(conn, job_id=job.id)
    if as_json:
        terminal.show_json(
            {
                "job": job,
                "recognised": known,
                "refused": [{"name": one.name, "error": one.error} for one in refused],
                "failed": failed,
            }
        )
    else:
        _say(job, known, [(r.name, r.error) for r in refused] + [(f.name, f.error) for f in failed])
    if job is not None and job.status == "paused":
        click.echo(f"\nPaused. Go on with: trapline ingest --resume {job.id}", err=True)
        raise click.exceptions.Exit(130)
    if refused or failed:
        raise click.exceptions.Exit(_FAILED)


def _say(job: JobRow | None, known: int, wrong: list[tuple[str, str]]) -> None:
    if job is not None:
        click.echo(
            f"\nJob {job.id} {job.status}: {job.completed} files in, {job.failed} failed,"
            f" {job.remaining} to go."
        )
    if known:
        click.echo(f"{known} {'file was' if known == 1 else 'files were'} there already.")
    if wrong:
        click.echo(f"\nNot in ({len(wrong)}):")
        for name, error in wrong[:_SHOWN]:
            click.echo(f"  {name}\n    {error}")
    if len(wrong) > _SHOWN:
        click.echo(f"  and {len(wrong) - _SHOWN} more; see them all with --json")
