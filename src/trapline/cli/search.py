"""`trapline search WORDS`."""

import sys
from contextlib import aclosing
from typing import Any

import click
import msgspec

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.filters import Filter
from trapline.knowledge.highlights import Snippet
from trapline.knowledge.searching import MOST_RESULTS, Query, Results, Searcher
from trapline.knowledge.showing import Result
from trapline.model import SiteId
from trapline.store import sites


@click.command()
@click.argument("words", nargs=-1, required=True)
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
@click.option("--application", "applications", multiple=True, type=click.UUID, help="Only of this.")
@click.option("--language", "languages", multiple=True, help="Only texts in it, such as en.")
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
    database: Database, words: tuple[str, ...], org: str, as_json: bool, **wishes: Any
) -> None:
    """Search what was indexed, by words and by meaning.

    \b
    Example: trapline search how to copy a dictionary --site docs
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
        wanted = tuple(
            [SiteId((await sites.find(conn, organisation_id, s)).id) for s in wishes["site_names"]]
        )
    query = _query(" ".join(words), wanted, wishes)
    searcher = Searcher.of(database.settings, Embedders(database.settings))
    async with aclosing(searcher), database.tenant_tx(organisation_id) as conn:
        found = await searcher.search(conn, organisation_id, query)
    if as_json:
        terminal.show_json(msgspec.to_builtins(found))
    else:
        _show(found, explain=wishes["explain"])


def _query(words: str, site_ids: tuple[SiteId, ...], wishes: dict[str, Any]) -> Query:
    moments = {name: wishes[name] and wishes[name].astimezone() for name in ("since", "until")}
    names = ("sources", "applications", "languages", "types", "hosts", "path")
    return Query(
        words=words,
        mode=wishes["mode"],
        method=wishes["method"],
        keyword_weight=wishes["keyword_weight"],
        vector_weight=wishes["vector_weight"],
        wanted=Filter(sites=site_ids, **moments, **{name: wishes[name] for name in names}),
        granularity="chunk" if wishes["passages"] else "page",
        most=wishes["limit"],
    )


def _show(found: Results, *, explain: bool) -> None:
    for word, meant in found.corrected.items():
        click.echo(f"{word!r} is nowhere: searched for {', '.join(meant)}.", err=True)
    for warning in found.warnings:
        click.echo(warning, err=True)
    if not found.items:
        click.echo("Nothing found.")
    for number, one in enumerate(found.items, start=1):
        click.echo(f"{number:2}. {click.style(one.title or one.uri, bold=True)}")
        click.echo(f"    {one.uri}")
        click.echo(f"    {_marked(one.snippet)}")
        if explain:
            click.echo(f"    {_reasons(one)}")


def _marked(snippet: Snippet) -> str:
    """Mark words in colour; into a pipe or file goes the text alone."""
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
