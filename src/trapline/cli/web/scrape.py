"""`trapline scrape URL`."""

from pathlib import Path

import click
import msgspec

from trapline import app
from trapline.cli import terminal
from trapline.cli.parameters import AtLeast, Language
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import InvalidInput
from trapline.model import Document, Format
from trapline.pipeline.caller import Caller
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scrape.scraper import ScrapeResult

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.Path(dir_okay=False, writable=True, path_type=Path)
_JPEG_QUALITY = 85


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
@click.option(
    "--language",
    "languages",
    type=Language(),
    multiple=True,
    help="Language to ask for, as de-DE.",
)
@click.option("--mobile", is_flag=True, help="Ask as a phone does.")
@click.option(
    "--timeout",
    type=AtLeast(0, kind=float, above=True),
    help="Seconds for all of it.  [default: 60]",
)
@click.option(
    "--max-age", type=AtLeast(0, kind=float), help="Seconds that a stored answer may be old."
)
@click.option("--proxy", help="HTTP proxy, http://user:password@host:port.")
@click.option("--insecure", is_flag=True, help="Accept any certificate.")
@click.option("--ignore-robots", is_flag=True, help="Do not obey robots.txt; this is recorded.")
@click.option(
    "--browser/--no-browser",
    "in_browser",
    default=None,
    help="Show the page in a browser, or never; by default where its text is made by scripts.",
)
@click.option("--wait", type=float, help="Seconds to wait in the browser once the page is ready.")
@click.option(
    "--scroll", "scroll_to_end", is_flag=True, help="Scroll to the end of the page first."
)
@click.option("--actions", "actions_file", type=_FILE, help="JSON list of actions on the page.")
@click.option("--screenshot", type=_OUT, help="Write a picture of the page: .png or .jpg.")
@click.option("--full-page", is_flag=True, help="The picture shows the whole page.")
@click.option("--pdf", type=_OUT, help="Print the page to a PDF file.")
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
    screenshot: Path | None,
    full_page: bool,
    pdf: Path | None,
    actions_file: Path | None,
    in_browser: bool | None,
    **options: object,
) -> None:
    """Fetch one page politely, store it as a version, and print it.

    \b
    Example: trapline scrape https://example.com/ --format links
    """
    rendering = _rendering(screenshot, full_page, pdf, actions_file, in_browser)
    request = PageOptions.parse(
        url=url, ignore_robots=ignore_robots, force=force, scrape=_scrape(options) | rendering
    )
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    async with app.open_scraper(database, database.settings) as scraper:
        answer = await scraper.scrape(Caller(organisation_id), request)
    _write_pictures(answer, screenshot, pdf)
    formats = sorted(request.scrape.formats)
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


def _scrape(options: dict[str, object]) -> dict[str, object]:
    """Translate the command's options; absent ones keep their defaults."""
    explicit = {name: value for name, value in options.items() if value not in (None, (), False)}
    if explicit.pop("whole_page", False):
        explicit["only_main_content"] = False
    if explicit.pop("insecure", False):
        explicit["verify_tls"] = False
    headers = explicit.pop("headers", ())
    if isinstance(headers, tuple) and headers:
        explicit["headers"] = dict(_header(str(line)) for line in headers)
    return explicit


def _rendering(
    screenshot: Path | None,
    full_page: bool,
    pdf: Path | None,
    actions_file: Path | None,
    in_browser: bool | None,
) -> dict[str, object]:
    """Translate the options that concern a browser."""
    actions = [] if actions_file is None else _actions(actions_file)
    if pdf is not None:
        actions.append({"type": "pdf"})
    options: dict[str, object] = {"actions": actions} if actions else {}
    if in_browser is not None:
        options["browser"] = "always" if in_browser else "never"
    if screenshot is not None:
        is_jpeg = screenshot.suffix.lower() in {".jpg", ".jpeg"}
        options["screenshot"] = {
            "type": "screenshot",
            "fullPage": full_page,
            "quality": _JPEG_QUALITY if is_jpeg else None,
        }
    return options


def _actions(file: Path) -> list[dict[str, object]]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[dict[str, object]])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is not a JSON list of actions: {error}") from None


def _write_pictures(answer: ScrapeResult, screenshot: Path | None, pdf: Path | None) -> None:
    rendering = answer.rendering
    if rendering is None:
        return
    if screenshot is not None and rendering.screenshot is not None:
        screenshot.write_bytes(rendering.screenshot)
    if pdf is not None and rendering.actions.pdfs:
        pdf.write_bytes(rendering.actions.pdfs[-1])


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


def _json(answer: ScrapeResult) -> str:
    return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text)
    else:
        out.write_text(f"{text}\n", encoding="utf-8")
