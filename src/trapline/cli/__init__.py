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

from trapline import logs
from trapline.errors import TraplineError
from trapline.settings import Settings

# Importing every command would make `trapline --help` slow, so their one-line help stands here.
SECTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "web": {
            "crawl": "Crawl a site; show how it goes and what came of it.",
            "scrape": "Print one page as markdown, or in any other format.",
            "map": "List the URLs of a site without visiting them.",
            "sites": "Sites: add, list, show, update, crawl, pause, history, rollback, purge.",
            "pages": "Pages and their versions: list, show, at, diff, documents.",
            "changes": "What was seen to change.",
            "duplicates": "Pages that are alike: list, show, decide.",
            "export": "Write what was visited as WARC, JSON lines, CSV or markdown.",
            "import": "Take in pages from WARC files.",
        },
        "knowledge": {
            "ingest": "Make files searchable; show how it goes and what failed.",
            "search": "Search what was indexed, by words and by meaning.",
            "sources": "Knowledge sources: list, show, add, refresh, rescrape, reprocess, retry, …",
            "apps": "Applications, which knowledge sources belong to: create, list, show, rescrape, delete.",
            "models": "Embedding models: list them, install a better one.",
        },
        "queue": {
            "jobs": "Jobs: create, list, show, logs, counts, errors, cancel, retry, why, …",
            "tasks": "Tasks and dead letters: list, show, retry, resolve.",
            "schedule": "Schedules: add, list, show, pause, resume, run, remove.",
            "webhooks": "Webhooks: what receivers were told, and telling them again.",
            "work": "Run tasks, without an API; on any number of machines.",
        },
        "admin": {
            "serve": "Start the API, the workers and the embedded PostgreSQL.",
            "doctor": "Check this machine and say what to mend.",
            "browser": "The browser for pages that scripts fill: status, install.",
            "audit": "Recompute every counter from the rows.",
            "blobs": "Raw bytes: list their places, move them.",
            "orgs": "Organisations and their limits.",
            "members": "Members of an organisation.",
            "keys": "API keys: create, list, revoke.",
            "db": "The database: url, psql, stats, backup, restore, reset.",
            "migrate": "The schema of the database: up, down, status.",
        },
    }
)
COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: text for section in SECTIONS.values() for name, text in section.items()}
)

_SERVICES = frozenset({"serve", "work"})


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        package = next((name for name, texts in SECTIONS.items() if cmd_name in texts), None)
        if package is None:
            return None
        command = importlib.import_module(f"trapline.cli.{package}.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101 (a wrong command file, not input)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context) -> None:
    from trapline.build_info import description  # noqa: PLC0415 (other commands need none of it)

    click.echo(f"trapline {description()}")
    ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, asked: _print_version(ctx) if asked else None,
    help="Print version, commit, extractor and whether it is compiled.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn websites and files into clean, searchable, versioned content in your own PostgreSQL."""
    settings = Settings.load()
    chosen = settings.logs
    if ctx.invoked_subcommand not in _SERVICES and "level" not in chosen.model_fields_set:
        # A command prints its own output; a service has nothing but its log.
        chosen = chosen.model_copy(update={"level": "warning"})
    ctx.obj = settings
    logs.configure(chosen)


def main() -> None:
    """Run one command; print an error as one sentence on stderr and exit with its status."""
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
