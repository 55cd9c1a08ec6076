"""The command line: one file a command, loaded when it is called.

In: words typed by a person. Out: tables for people, JSON with --json, an exit status with a meaning.
Owns no table.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

import click

from trapline import __version__, logs
from trapline.errors import TraplineError
from trapline.settings import Settings

# Importing every command would make `trapline --help` slow, so their one-line help stands here.
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "crawl": "Crawl a site; show how it goes and what came of it.",
        "scrape": "Print one page as markdown, or in any other format.",
        "map": "List the URLs of a site without visiting them.",
        "ingest": "Make files searchable; show how it goes and what failed.",
        "search": "Search what was indexed, by words and by meaning.",
        "serve": "Start the API, the workers and the embedded PostgreSQL.",
        "work": "Run tasks, without an API; on any number of machines.",
        "jobs": "Jobs: create, list, show, logs, counts, errors, cancel, retry, why, …",
        "tasks": "Tasks and dead letters: list, show, retry, resolve.",
        "webhooks": "Webhooks: what receivers were told, and telling them again.",
        "schedule": "Schedules: add, list, show, pause, resume, run, remove.",
        "sites": "Sites: add, list, show, update, crawl, pause, history, rollback, purge.",
        "apps": "Applications, which knowledge sources belong to: create, list, show, rescrape, delete.",
        "sources": "Knowledge sources: list, show, add, refresh, rescrape, reprocess, retry, …",
        "models": "Embedding models: list them, install a better one.",
        "pages": "Pages and their versions: list, show, at, diff, documents.",
        "changes": "What was seen to change.",
        "duplicates": "Pages that are alike: list, show, decide.",
        "export": "Write what was visited as WARC, JSON lines, CSV or markdown.",
        "import": "Take in pages from WARC files.",
        "blobs": "Raw bytes: list their places, move them.",
        "audit": "Recompute every counter from the rows.",
        "orgs": "Organisations and their limits.",
        "members": "Members of an organisation.",
        "keys": "API keys: create, list, revoke.",
        "db": "The database: url, psql, stats, backup, restore, reset.",
        "migrate": "The schema of the database: up, down, status.",
        "doctor": "Check this machine and say what to mend.",
    }
)

_SERVICES = frozenset({"serve", "work"})


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"trapline.cli.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101 (a wrong command file, not input)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trapline")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn websites and files into clean, searchable, versioned content in your own PostgreSQL."""
    settings = Settings.load()
    if ctx.invoked_subcommand not in _SERVICES and "log_level" not in settings.model_fields_set:
        # Whoever types a command reads its own output; a service has nothing but its log.
        settings = settings.model_copy(update={"log_level": "warning"})
    ctx.obj = settings
    logs.configure(settings)


def main() -> None:
    """Run one command; what goes wrong is one sentence on stderr and an exit status."""
    # The extractor multiplies small matrices: threads for them cost more than they save. numpy
    # reads this when it is first imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        # Without standalone mode click returns the status of `ctx.exit` instead of leaving.
        sys.exit(cli(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except TraplineError as error:
        click.echo(f"trapline: {error.message}", err=True)
        sys.exit(error.exit_status)
