"""`trapline search WORDS`."""

import sys
from contextlib import aclosing
from typing import Any

import click
import msgspec

from trapline.cli import terminal
from trapline.cli.parameters import Language
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge import applications
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.filters import SearchFilter
from trapline.knowledge.highlights import Snippet
from trapline.knowledge.results import Result
from trapline.knowledge.search import MOST_RESULTS, Searcher, SearchQuery, SearchResults
from trapline.model import SiteId
from trapline.store import sites


def _words(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    del param
    for word in words:
        if word.startswith("--"):
            raise click.NoSuchOption(word, ctx=ctx)
    return words


# A word to leave out begins with a dash, as an option does; -h would be found in -fish.
@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, callback=_words)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "keyword", "vector"]),
    default="hybrid",
    show_default=True,
    help="By words, by meaning, or both.",
)
@click.option(
    "--method",
    type=click.Choice(["weighted", "rrf"]),
    default="weighted",
    show_default=True,
    help="How both become one ranking: of scores, or of ranks.",
)
@click.option("--keyword-weight", type=float, help="Of words; by itself, as suits the model.")
@click.option("--vector-weight", type=float, help="Of meaning; by itself, as suits the model.")
@click.option("--site", "site_names", multiple=True, help="Only of this site, by id or name.")
@click.option("--source", "sources", multiple=True, type=click.UUID, help="Only of this source.")
@click.option("--app", "app_names", multiple=True, help="Only of this application, by id or name.")
@click.option(
    "--language", "languages", type=Language(), multiple=True, help="Only texts in it, such as en."
)
@click.option("--type", "types", multiple=True, help="Only this media type, such as pdf.")
@click.option("--host", "hosts", multiple=True, help="Only from this host.")
@click.option("--path", help="Only where the path begins so.")
@click.option("--since", type=click.DateTime(), help="Only from this time on.")
@click.option("--until", type=click.DateTime(), help="Only before this time.")
@click.option("--passages", is_flag=True, help="List passages instead of pages.")
@click.option("--explain", is_flag=True, help="Tell each leg's rank and score.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_RESULTS),
    default=10,
    show_default=True,
    help="Most results.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database, words: tuple[str, ...], org: str, as_json: bool, **options: Any
) -> None:
    """Search indexed content by keywords and by meaning. A word after a dash must not occur.

    \b
    Example: trapline search how to copy a dictionary --site docs
             trapline search heron -fish
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
        parts = tuple(
            [SiteId((await sites.find(conn, organisation_id, s)).id) for s in options["site_names"]]
        )
        options["applications"] = tuple(
            [(await applications.find(conn, organisation_id, a)).id for a in options["app_names"]]
        )
    query = _query(" ".join(words), parts, options)
    searcher = Searcher.of(database.settings.vectors, Embedders(database.settings.embedding))
    async with aclosing(searcher), database.tenant_tx(organisation_id) as conn:
        results = await searcher.search(conn, organisation_id, query)
    if as_json:
        terminal.show_json(msgspec.to_builtins(results))
    else:
        _show(results, explain=options["explain"])


def _query(words: str, site_ids: tuple[SiteId, ...], options: dict[str, Any]) -> SearchQuery:
    moments = {name: options[name] and options[name].astimezone() for name in ("since", "until")}
    names = ("sources", "applications", "languages", "types", "hosts", "path")
    return SearchQuery(
        words=words,
        mode=options["mode"],
        method=options["method"],
        keyword_weight=options["keyword_weight"],
        vector_weight=options["vector_weight"],
        filters=SearchFilter(sites=site_ids, **moments, **{name: options[name] for name in names}),
        granularity="chunk" if options["passages"] else "page",
        most=options["limit"],
    )


def _show(results: SearchResults, *, explain: bool) -> None:
    for word, meant in results.corrected.items():
        click.echo(f"{word!r} is nowhere: searched for {', '.join(meant)}.", err=True)
    for warning in results.warnings:
        click.echo(warning, err=True)
    if not results.items:
        click.echo("Nothing found.")
    for number, one in enumerate(results.items, start=1):
        click.echo(f"{number:2}. {click.style(one.title or one.uri, bold=True)}")
        click.echo(f"    {one.uri}")
        click.echo(f"    {_marked(one.snippet)}")
        if explain:
            click.echo(f"    {_reasons(one)}")


def _marked(snippet: Snippet) -> str:
    """Highlight words in colour on a terminal; elsewhere return the plain text."""
    if not sys.stdout.isatty():
        return snippet.text
    text, at = "", 0
    for start, end in snippet.marks:
        text += snippet.text[at:start] + click.style(snippet.text[start:end], fg="yellow")
        at = end
    return text + snippet.text[at:]


def _reasons(one: Result) -> str:
    legs = (f"{name} #{why.rank} ({why.score:.3f})" for name, why in one.reasons.items())
    return f"{one.score:.4f} = {' + '.join(legs)}"
