"""`trapline sources`: what search reads."""

from datetime import UTC, datetime
from typing import Any, get_args
from uuid import UUID

import click
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.cli.apps import organisation_of
from trapline.cli.schedule import seconds_of
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.knowledge import applications, sources
from trapline.knowledge.config import read_config
from trapline.knowledge.embedding.embedders import Embedders, default_config
from trapline.knowledge.sources import Provider
from trapline.model import JobId, SourceId
from trapline.pipeline import ingestion, remote_crawls, renewing, source_pages, source_schedules
from trapline.pipeline.source_pages import CRAWL_DEPTH, CRAWL_LIMIT, Errand, Wanted
from trapline.pipeline.sql import ingestion as reads
from trapline.pipeline.sql.ingestion import ShownSource
from trapline.queue import jobs

_FIRST = datetime(1, 1, 1, tzinfo=UTC)


@click.group()
def command() -> None:
    """Knowledge sources: files, pages and sites that are searched.

    \b
    Example: trapline sources list --app support
    """


@command.command("list")
@click.option("--app", "application", help="Only those of an application, by id or name.")
@click.option(
    "--status",
    type=click.Choice(["pending", "completed", "failed", "cancelled"]),
    help="Only those that are so.",
)
@click.option(
    "--limit",
    "most",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Most that are listed.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database,
    application: str | None,
    status: str | None,
    most: int,
    org: str,
    as_json: bool,
) -> None:
    """List sources, oldest first.

    \b
    Example: trapline sources list --status failed
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        found = None
        if application is not None:
            found = (await applications.find(conn, organisation_id, application)).id
        rows = await reads.list_sources(
            conn,
            organisation_id=organisation_id,
            application_id=found,
            status=status,
            kind=None,
            after_at=_FIRST,
            after_id=UUID(int=0),
            most=most,
        )
    shown = [_fields(row) if as_json else _line(row) for row in rows]
    terminal.show(shown, as_json=as_json)


@command.command("show")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, source: UUID, org: str, as_json: bool) -> None:
    """Show a source and how far it is.

    \b
    Example: trapline sources show 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await ingestion.shown(conn, organisation_id, SourceId(source))
        counts = await reads.count_passages(conn, source_id=row.source_id)
        progress = await ingestion.progress(conn, organisation_id, source, now=datetime.now(UTC))
    fields = _fields(row)
    if counts is not None:
        fields |= {
            "texts": counts.texts,
            "passages": counts.passages,
            "renewed": counts.renewed,
        }
    fields |= {name: getattr(progress, name) for name in type(progress).__dataclass_fields__}
    terminal.show_one(fields, as_json=as_json)


@command.command("add")
@click.argument("url")
@click.option("--crawl", "crawl_links", is_flag=True, help="The whole site, not the page alone.")
@click.option("--limit", type=int, default=CRAWL_LIMIT, show_default=True, help="Most pages.")
@click.option("--depth", type=int, default=CRAWL_DEPTH, show_default=True, help="Most links away.")
@click.option("--app", "application", help="Application that it is for, by id or name.")
@click.option("--every", help="Fetch it again so often: 15m, 6h, 1d, 2w.")
@click.option(
    "--provider",
    type=click.Choice(get_args(Provider)),
    default="trapline",
    show_default=True,
    help="Who fetches it: we, or the Firecrawl of FIRECRAWL_API_URL.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def add(
    database: Database,
    url: str,
    crawl_links: bool,
    limit: int,
    depth: int,
    application: str | None,
    every: str | None,
    provider: Provider,
    org: str,
    as_json: bool,
) -> None:
    """Queue a page or a site to be fetched and made searchable; a running worker does it.

    \b
    Example: trapline sources add https://example.com/docs/ --crawl
    """
    if provider == "firecrawl":
        remote_crawls.require(database.settings)
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        found = None
        if application is not None:
            found = (await applications.find(conn, organisation_id, application)).id
        wanted = Wanted(
            organisation_id=organisation_id,
            url=url,
            config=default_config(database.settings),
            crawl_links=crawl_links,
            limit=limit,
            max_depth=depth,
            application_id=found,
            rescrape_every=seconds_of(every),
            provider=provider,
        )
        ttl, _ = jobs.times_kept(database.settings)
        source, job_id = await source_pages.fetch(conn, wanted, Errand(ttl))
    terminal.show_one({"source_id": source.id, "job_id": job_id}, as_json=as_json)


@command.command("refresh")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def refresh(database: Database, source: UUID, org: str) -> None:
    """Fetch a page or a site again.

    \b
    Example: trapline sources refresh 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        if row.provider == "firecrawl":
            remote_crawls.require(database.settings)
        ttl, _ = jobs.times_kept(database.settings)
        job_id = await source_pages.refresh(conn, row, Errand(ttl))
    click.echo(f"Job {job_id} fetches it again.")


@command.command("rescrape")
@click.argument("source", type=click.UUID)
@click.option("--every", help="Fetch it again so often: 15m, 6h, 1d, 2w.")
@click.option("--never", is_flag=True, help="Only as often as its application says.")
@click.option("--pause/--resume", "paused", default=None, help="Hold that, or go on with it.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def rescrape(
    database: Database,
    source: UUID,
    every: str | None,
    never: bool,
    paused: bool | None,
    org: str,
    as_json: bool,
) -> None:
    """Say how often a page or a site is fetched again by itself, or pause that.

    \b
    Example: trapline sources rescrape 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10 --every 6h
    """
    if every is not None and never:
        raise click.UsageError("Either --every or --never.")
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        if row.kind == "file" and every is not None:
            raise Conflict("A file is not fetched, so it cannot be fetched again.")
        if every is not None or never:
            row = await sources.change(
                conn, row, rescrape_every=seconds_of(every), keep_rescrape=False
            )
            await source_schedules.follow(conn, row)
        if paused is not None:
            await source_schedules.hold(conn, row, paused=paused)
        shown = await ingestion.shown(conn, organisation_id, SourceId(source))
    terminal.show_one(_fields(shown), as_json=as_json)


@command.command("reprocess")
@click.argument("source", type=click.UUID)
@click.option("--model", help="Embedding model; see trapline models list.")
@click.option("--chunk-tokens", type=int, help="Most tokens of a passage.")
@click.option("--chunk-overlap", type=int, help="Tokens that a passage repeats of the one before.")
@terminal.organisation_option
@terminal.with_database
async def reprocess(
    database: Database,
    source: UUID,
    model: str | None,
    chunk_tokens: int | None,
    chunk_overlap: int | None,
    org: str,
) -> None:
    """Cut and embed a source anew; what there is of it is found until the new is complete.

    \b
    Example: trapline sources reprocess 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10 --chunk-tokens 512
    """
    given = {"model": model, "chunk_tokens": chunk_tokens, "chunk_overlap": chunk_overlap}
    config = read_config(
        {name: value for name, value in given.items() if value is not None},
        default_config(database.settings),
    )
    Embedders(database.settings).named(config.model)
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        job_id = await renewing.renew(conn, organisation_id, {row.id: config})
    click.echo(f"Job {job_id} makes it anew.")


@command.command("retry")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def retry(database: Database, source: UUID, org: str) -> None:
    """Run what failed in the source's job again, in a new job.

    \b
    Example: trapline sources retry 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        if row.job_id is None:
            raise Conflict("Nothing was done for that source, so nothing failed.")
        job_id = await ingestion.retry(conn, JobId(row.job_id), by="cli")
    click.echo(f"Job {job_id} runs it again.")


@command.command("cancel")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def cancel(database: Database, source: UUID, org: str) -> None:
    """Cancel the job that fills a source. That of a file is its whole upload.

    \b
    Example: trapline sources cancel 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        job_id = await ingestion.cancel(conn, row, by="trapline sources cancel")
    click.echo(f"Job {job_id} is cancelled.")


@command.command("delete")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def delete(database: Database, source: UUID, org: str) -> None:
    """Delete a source with all that search reads of it.

    \b
    Example: trapline sources delete 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        await ingestion.delete(conn, row)
    click.echo(f"{row.name} is deleted.")


def _fields(row: ShownSource) -> dict[str, Any]:
    fields = asdict(row)
    del fields["organisation_id"]
    for name, shown in (
        ("rescrape_every", "rescrape_seconds"),
        ("fetched_every", "fetched_every_seconds"),
    ):
        every = fields.pop(name)
        fields[shown] = None if every is None else every.total_seconds()
    return fields


def _line(row: ShownSource) -> dict[str, Any]:
    return {
        "id": row.source_id,
        "kind": row.kind,
        "name": row.name,
        "status": row.status,
        "next fetch": "paused" if row.fetching_paused else row.next_fetch_at,
        "error": row.error,
    }
