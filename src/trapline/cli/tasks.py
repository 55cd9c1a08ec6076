"""`trapline tasks`: single tasks, and those that failed for good."""

from datetime import UTC, datetime

import click
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.cli.jobs import job_id_of
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import ExitCode, InvalidInput
from trapline.model import TaskId
from trapline.pipeline import ingestion
from trapline.queue import deadletters, tasks, why
from trapline.queue.deadletters import Filter


@click.group()
def command() -> None:
    """Tasks: list, show, retry, resolve.

    \b
    Example: trapline tasks list --dead
    """


@command.command("list")
@click.option("--job", help="The tasks of this job, in the order they were added.")
@click.option("--dead", is_flag=True, help="Failed tasks that nobody has dealt with.")
@click.option("--kind", help="With --dead: only of this kind.")
@click.option("--after", default=0, type=int, help="With --job: only tasks after this id.")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="At most so many.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database,
    job: str | None,
    dead: bool,
    kind: str | None,
    after: int,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List a job's tasks, or the dead letters of an organisation.

    \b
    Example: trapline tasks list --job 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    job_id = None if job is None else job_id_of(job)
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        if dead:
            letters = await deadletters.list_open(
                conn, organisation.id, Filter(job_id=job_id, kind=kind), most=limit
            )
            terminal.show(letters, as_json=as_json, empty="No dead letters.")
        elif job_id is not None:
            rows = await tasks.list_of_job(conn, job_id, after=after, most=limit)
            terminal.show(rows, as_json=as_json, empty="No tasks.")
        else:
            raise InvalidInput("Say which: --job JOB or --dead.")


@command.command("show")
@click.argument("task", type=int)
@terminal.json_option
@terminal.with_database
async def show(database: Database, task: int, as_json: bool) -> None:
    """Show a task, where it is and what it waits for.

    \b
    Example: trapline tasks show 4711
    """
    async with database.system_tx() as conn:
        row = await tasks.get(conn, TaskId(task))
        reason = await why.why(conn, TaskId(task), now=datetime.now(UTC))
    terminal.show_one(asdict(row) | {"why": reason}, as_json=as_json)


def _chosen(task: tuple[int, ...], job: str | None, kind: str | None, code: int | None) -> Filter:
    if not task and job is None and kind is None and code is None:
        raise InvalidInput("Name tasks, or choose them with --job, --kind or --code.")
    return Filter(
        [TaskId(one) for one in task] or None,
        None if job is None else job_id_of(job),
        kind,
        None if code is None else ExitCode(code),
    )


_job_option = click.option("--job", help="All dead letters of this job.")
_kind_option = click.option("--kind", help="Only of this kind.")
_code_option = click.option("--code", type=int, help="Only with this exit code.")


@command.command("retry")
@click.argument("task", nargs=-1, type=int)
@_job_option
@_kind_option
@_code_option
@terminal.organisation_option
@terminal.with_database
async def retry(
    database: Database,
    task: tuple[int, ...],
    job: str | None,
    kind: str | None,
    code: int | None,
    org: str,
) -> None:
    """Run dead letters again, in a new job.

    \b
    Example: trapline tasks retry --kind single_urls --code 26
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        again = await ingestion.retry_letters(
            conn, organisation.id, _chosen(task, job, kind, code), by="cli"
        )
    click.echo(str(again))


@command.command("resolve")
@click.argument("task", nargs=-1, type=int)
@_job_option
@_kind_option
@_code_option
@terminal.organisation_option
@terminal.with_database
async def resolve(
    database: Database,
    task: tuple[int, ...],
    job: str | None,
    kind: str | None,
    code: int | None,
    org: str,
) -> None:
    """Mark dead letters as dealt with.

    \b
    Example: trapline tasks resolve 4711 4712
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        count = await deadletters.resolve(
            conn, organisation.id, _chosen(task, job, kind, code), by="cli"
        )
    click.echo(f"{count} resolved.")
