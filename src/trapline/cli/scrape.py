"""`trapline scrape URL`."""

from pathlib import Path

import click
import msgspec

from trapline import app
from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import InvalidInput
from trapline.model import Document, Format
from trapline.pipeline.asking import Asker
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scraping import Scraped


@click.command()
@click.argument("url")
@click.option(
    "--format",
    "formats",
    type=click.Choice([str(name) for name in Format]),
    multiple=True,
    help="What to print, markdown if not given; several are printed as JSON.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--whole-page", is_flag=True, help="Everything, not only the main content.")
@click.option("--include-tag", "include_tags", multiple=True, help="Only what a selector finds.")
@click.option("--exclude-tag", "exclude_tags", multiple=True, help="Without what it finds.")
@click.option("--header", "headers", multiple=True, help="Header to send, as 'Name: value'.")
@click.option("--language", "languages", multiple=True, help="Language to ask for, as de-DE.")
@click.option("--mobile", is_flag=True, help="Ask as a phone does.")
@click.option("--timeout", type=float, help="Seconds for all of it.  [default: 60]")
@click.option("--max-age", type=float, help="Seconds that a stored answer may be old.")
@click.option("--proxy", help="HTTP proxy, http://user:password@host:port.")
@click.option("--insecure", is_flag=True, help="Accept any certificate.")
@click.option("--ignore-robots", is_flag=True, help="Do not obey robots.txt; this is recorded.")
@click.option("--force", is_flag=True, help="Fetch again what the server says is unchanged.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database,
    url: str,
    out: Path | None,
    org: str,
    as_json: bool,
    ignore_robots: bool,
    force: bool,
    **wishes: object,
) -> None:
    """Print one page: fetched politely, read, and stored as a version.

    \b
    Example: trapline scrape https://example.com/ --format links
    """
    options = PageOptions.parse(
        url=url, ignore_robots=ignore_robots, force=force, scrape=_scrape(wishes)
    )
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    async with app.scraping(database, database.settings) as scraper:
        answer = await scraper.scrape(Asker(organisation_id), options)
    formats = sorted(options.scrape.formats)
    if as_json or len(formats) > 1:
        _write(_json(answer), out)
    elif answer.document is not None and answer.ok:
        _write(shown(answer.document, formats[0]), out)
    if answer.warning and not as_json:
        click.echo(answer.warning, err=True)
    if not answer.ok:
        if not as_json:
            click.echo(f"trapline: {answer.error}", err=True)
        raise click.exceptions.Exit(1)


def _scrape(wishes: dict[str, object]) -> dict[str, object]:
    """Turn what was typed into options; what was not typed is left to its default."""
    given = {name: value for name, value in wishes.items() if value not in (None, (), False)}
    if given.pop("whole_page", False):
        given["only_main_content"] = False
    if given.pop("insecure", False):
        given["verify_tls"] = False
    headers = given.pop("headers", ())
    if isinstance(headers, tuple) and headers:
        given["headers"] = dict(_header(str(line)) for line in headers)
    return given


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise InvalidInput(f"{line!r} is not a header; write it as 'Name: value'.")
    return name.strip(), value.strip()


def shown(document: Document, name: Format) -> str:
    """Return one format as text."""
    lines = {
        Format.LINKS: [link.url for link in document.links],
        Format.IMAGES: [image.url for image in document.images],
    }
    texts = {
        Format.MARKDOWN: document.markdown,
        Format.HTML: document.html,
        Format.RAW_HTML: document.raw_html,
        Format.SUMMARY: document.summary,
    }
    if name in lines:
        return "\n".join(dict.fromkeys(lines[name]))
    if name in texts:
        return texts[name] or ""
    value = document.structured if name is Format.STRUCTURED else document.branding
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _json(answer: Scraped) -> str:
    return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text)
    else:
        out.write_text(f"{text}\n", encoding="utf-8")
