"""`trapline sites`: managed websites."""

from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import InvalidInput
from trapline.pipeline.sites import site_config
from trapline.pipeline.sites import site_operations as pipeline
from trapline.queue.schedule.schedules import DEFAULT_IMPORTANCE, priority_of
from trapline.store import sites
from trapline.store.sql.sites import SiteRow

_BY = "cli"
_MOST = 10_000


@click.group()
def command() -> None:
    """Sites: add, list, show, update, remove, purge, history, rollback, crawl, pause, resume.

    \b
    Example: trapline sites add docs https://example.com/docs/ --set max_depth=5
    """


def config_of(fields: tuple[str, ...], file: Path | None) -> dict[str, Any]:
    """Read a config from a JSON file and NAME=VALUE pairs, whose values are JSON or plain words."""
    config: dict[str, Any] = {}
    if file is not None:
        try:
            config = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidInput(f"{file}: {error}") from None
    for setting in fields:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InvalidInput(f"{setting!r} is not NAME=VALUE.")
        config[name.strip()] = _value(text)
    return config


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


async def _find(conn: Connection, org: str, reference: str) -> SiteRow:
    organisation = await tenancy.find_organisation(conn, org)
    return await sites.find(conn, organisation.id, reference)


_config_options = [
    click.option(
        "--set",
        "fields",
        multiple=True,
        metavar="NAME=VALUE",
        help="A field of its config (docs/sites.md).",
    ),
    click.option(
        "--config",
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A JSON file with the whole config.",
    ),
]


def _with_config(function: Any) -> Any:
    for option in reversed(_config_options):
        function = option(function)
    return function


@command.command("add")
@click.argument("name")
@click.argument("url")
@_with_config
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def add(
    database: Database,
    name: str,
    url: str,
    fields: tuple[str, ...],
    file: Path | None,
    org: str,
    as_json: bool,
) -> None:
    """Register a site.

    \b
    Example: trapline sites add docs https://example.com/docs/ --set rate=60 --set 'include=["^/docs/"]'
    """
    base_url = site_config.base_url_of(url)
    config = site_config.validate_config(config_of(fields, file), base_url)
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await pipeline.create(
            conn, organisation.id, name, base_url, config=config, created_by=_BY
        )
    terminal.show_one(row, as_json=as_json)


@command.command("list")
@click.option("--status", type=click.Choice(get_args(sites.SiteStatus)), help="Only these.")
@click.option(
    "--sort",
    type=click.Choice(get_args(sites.SiteOrder)),
    default="oldest",
    help="What comes first.",
)
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, _MOST), help="Most."
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database,
    status: sites.SiteStatus | None,
    sort: sites.SiteOrder,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List sites.

    \b
    Example: trapline sites list --status active
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        rows = await sites.sites_of(organisation.id, status=status).read(conn, sort, most=limit)
    columns = ("id", "name", "base_url", "status", "config_number", "created_at")
    lines = [{name: getattr(row, name) for name in columns} for row in rows]
    terminal.show(rows if as_json else lines, as_json=as_json, empty="No sites yet.")


@command.command("show")
@click.argument("site")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, site: str, org: str, as_json: bool) -> None:
    """Show a site with its config.

    \b
    Example: trapline sites show docs
    """
    async with database.system_tx() as conn:
        terminal.show_one(await _find(conn, org, site), as_json=as_json)


@command.command("update")
@click.argument("site")
@click.option("--name", help="Another name.")
@click.option("--url", help="Another address.")
@click.option("--note", help="Why, for the history.")
@click.option("--replace", is_flag=True, help="The config is only what is given here.")
@_with_config
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def update(
    database: Database,
    site: str,
    name: str | None,
    url: str | None,
    note: str | None,
    replace: bool,
    fields: tuple[str, ...],
    file: Path | None,
    org: str,
    as_json: bool,
) -> None:
    """Change a site. `--set NAME=null` takes a field of the config away.

    \b
    Example: trapline sites update docs --set max_depth=3 --note "the archive is endless"
    """
    base_url = None if url is None else site_config.base_url_of(url)
    changes = config_of(fields, file)
    async with database.system_tx() as conn:
        row = await _find(conn, org, site)
        config = None
        if changes or replace:
            merged = changes if replace else {**row.config, **changes}
            config = {key: value for key, value in merged.items() if value is not None}
            config = site_config.validate_config(config, base_url or row.base_url)
        change = sites.SiteUpdate(name, base_url, None, config, note)
        row = await pipeline.update(conn, row, change, by=_BY)
    terminal.show_one(row, as_json=as_json)


@command.command("remove")
@click.argument("site")
@terminal.organisation_option
@terminal.with_database
async def remove(database: Database, site: str, org: str) -> None:
    """Delete a site: its name is free again. What it holds stays until it is purged.

    \b
    Example: trapline sites remove docs
    """
    async with database.system_tx() as conn:
        row = await _find(conn, org, site)
        await pipeline.delete(conn, row, by=_BY)
    click.echo(f"Removed {row.name}. To remove its pages too: trapline sites purge {row.id}")


@command.command("purge")
@click.argument("site")
@click.confirmation_option(prompt="This deletes all pages and versions of the site. Go on?")
@terminal.organisation_option
@terminal.with_database
async def purge(database: Database, site: str, org: str) -> None:
    """Delete a site with everything under it; a removed one is named by its id.

    \b
    Example: trapline sites purge docs --yes
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await sites.find_to_purge(conn, organisation.id, site)
        await pipeline.delete(conn, row, purge=True, by=_BY)
    gone = await pipeline.purge_marked(database)
    click.echo(f"Purged {row.name}: {gone} rows.")


@command.command("history")
@click.argument("site")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def history(database: Database, site: str, org: str, as_json: bool) -> None:
    """List a site's configs, newest first.

    \b
    Example: trapline sites history docs
    """
    async with database.system_tx() as conn:
        rows = await sites.history(conn, await _find(conn, org, site))
    terminal.show(rows, as_json=as_json)


@command.command("rollback")
@click.argument("site")
@click.argument("number", type=click.IntRange(1, 2**31 - 1))
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def rollback(database: Database, site: str, number: int, org: str, as_json: bool) -> None:
    """Make an earlier config the current one.

    \b
    Example: trapline sites rollback docs 3
    """
    async with database.system_tx() as conn:
        row = await pipeline.rollback(conn, await _find(conn, org, site), number, by=_BY)
    terminal.show_one(row, as_json=as_json)


@command.command("crawl")
@click.argument("site")
@click.option("--set", "fields", multiple=True, metavar="NAME=VALUE", help="Put over its config.")
@click.option(
    "--var", "variables", multiple=True, metavar="NAME=VALUE", help="A value for ${NAME}."
)
@click.option(
    "--priority", default=DEFAULT_IMPORTANCE, show_default=True, help="1 to 10; higher runs first."
)
@terminal.organisation_option
@terminal.with_database
async def crawl(
    database: Database,
    site: str,
    fields: tuple[str, ...],
    variables: tuple[str, ...],
    priority: int,
    org: str,
) -> None:
    """Queue a crawl of a site with its config, and print the job's id. A worker must run.

    \b
    Example: trapline sites crawl docs --set limit=100 --var version=3.1
    """
    overrides = pipeline.CrawlOverrides(
        config_of(fields, None), config_of(variables, None), {}, priority_of(priority), "cli"
    )
    async with database.system_tx() as conn:
        job_id = await pipeline.crawl(conn, await _find(conn, org, site), overrides)
    click.echo(str(job_id))


@command.command("pause")
@click.argument("site")
@terminal.organisation_option
@terminal.with_database
async def pause(database: Database, site: str, org: str) -> None:
    """Pause a site: no crawl of it starts, and running ones are paused.

    \b
    Example: trapline sites pause docs
    """
    async with database.system_tx() as conn:
        await pipeline.pause(conn, await _find(conn, org, site), by=_BY)
    click.echo("Paused.")


@command.command("resume")
@click.argument("site")
@terminal.organisation_option
@terminal.with_database
async def resume(database: Database, site: str, org: str) -> None:
    """Resume a site and its paused crawls.

    \b
    Example: trapline sites resume docs
    """
    async with database.system_tx() as conn:
        await pipeline.resume(conn, await _find(conn, org, site), by=_BY)
    click.echo("Resumed.")
