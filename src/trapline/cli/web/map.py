"""`trapline map URL`."""

import click

from trapline import app
from trapline.cli import terminal
from trapline.cli.parameters import AtLeast
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.pipeline.caller import Caller
from trapline.pipeline.options import MapOptions
from trapline.pipeline.scrape.mapper import Mapper


@click.command()
@click.argument("url")
@click.option("--search", help="Only URLs with one of these words; the best matches first.")
@click.option("--limit", type=AtLeast(1), default=5_000, show_default=True, help="Most URLs.")
@click.option(
    "--sitemap",
    type=click.Choice(["include", "skip", "only"]),
    default="include",
    show_default=True,
    help="Whether sitemaps are read.",
)
@click.option(
    "--subdomains/--no-subdomains", default=True, show_default=True, help="Also on subdomains."
)
@click.option(
    "--ignore-query/--keep-query",
    default=True,
    show_default=True,
    help="Count URLs that differ in their query as one.",
)
@click.option("--entire-domain", is_flag=True, help="Also above and beside the URL's section.")
@click.option("--external-links", is_flag=True, help="Also links to other sites.")
@click.option(
    "--timeout",
    "seconds",
    type=AtLeast(0, kind=float, above=True),
    help="Seconds for all of it.  [default: 60]",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database,
    url: str,
    entire_domain: bool,
    seconds: float | None,
    org: str,
    as_json: bool,
    **options: object,
) -> None:
    """List the URLs of a site: from its sitemaps, the page's links, and earlier visits.

    \b
    Example: trapline map https://example.com/ --search pricing
    """
    scrape = {} if seconds is None else {"timeout": seconds}
    request = MapOptions.parse(url=url, same_section=not entire_domain, scrape=scrape, **options)
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    async with app.open_scraper(database, database.settings, name="map") as scraper:
        mapped = await Mapper.sharing(scraper).map(Caller(organisation_id), request)
    if as_json:
        terminal.show_json(mapped)
        return
    for link in mapped.links:
        click.echo(link.url)
    if mapped.warning:
        click.echo(mapped.warning, err=True)
