"""`trapline tasks`: single tasks, and dead letters."""

from datetime import UTC, datetime

import click
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode, InvalidInput
from trapline.model import TaskId
from trapline.pipeline.ingest import source_operations
from trapline.queue import dead_letters, jobs, tasks, why
from trapline.queue.dead_letters import DeadLetterFilter
from trapline.queue.sql.dead_letters import DeadLetterRow


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
    async with database.system_tx() as conn:
        job_id = None if job is None else await jobs.find_id(conn, job)
        organisation = await tenancy.find_organisation(conn, org)
        if dead:
            letters = await dead_letters.list_open(
                conn, organisation.id, DeadLetterFilter(job_id=job_id, kind=kind), most=limit
            )
            urls = await dead_letters.urls_of(conn, [letter.task_id for letter in letters])
            lines = [_letter_line(letter, urls.get(letter.task_id)) for letter in letters]
            terminal.show(letters if as_json else lines, as_json=as_json, empty="No dead letters.")
        elif job_id is not None:
            rows = await tasks.list_of_job(conn, job_id, after=after, most=limit)
            terminal.show(rows, as_json=as_json, empty="No tasks.")
        else:
            raise InvalidInput("Say which: --job JOB or --dead.")


def _letter_line(letter: DeadLetterRow, url: str | None) -> dict[str, object]:
    code = None if letter.code is None else ExitCode(letter.code).name.lower()
    return {
        "task": letter.task_id,
        "url": url,
        "error": letter.error,
        "code": code,
        "kind": letter.kind,
        "failed_at": letter.failed_at,
        "job": letter.job_id,
    }


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


async def _filter(
    conn: Connection, task: tuple[int, ...], job: str | None, kind: str | None, code: int | None
) -> DeadLetterFilter:
    if not task and job is None and kind is None and code is None:
        raise InvalidInput("Name tasks, or choose them with --job, --kind or --code.")
    return DeadLetterFilter(
        [TaskId(one) for one in task] or None,
        None if job is None else await jobs.find_id(conn, job),
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
    """Retry dead letters in a new job.

    \b
    Example: trapline tasks retry --kind single_urls --code 26
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        again = await source_operations.retry_letters(
            conn, organisation.id, await _filter(conn, task, job, kind, code), by="cli"
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
        count = await dead_letters.resolve(
            conn, organisation.id, await _filter(conn, task, job, kind, code), by="cli"
        )
    click.echo(f"{count} resolved.")
