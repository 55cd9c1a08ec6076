"""`trapline sources`: knowledge sources, which search covers."""

from datetime import UTC, datetime
from typing import Any, get_args
from uuid import UUID

import click
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.cli.knowledge.apps import organisation_of
from trapline.cli.parameters import AtLeast
from trapline.cli.queue.schedule import seconds_of
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.knowledge import applications, sources
from trapline.knowledge.embedding.embedders import Embedders, default_config
from trapline.knowledge.source_config import read_config
from trapline.knowledge.sources import Provider
from trapline.model import JobId, SourceId
from trapline.pipeline.ingest import (
    reembed,
    remote_crawls,
    source_operations,
    source_pages,
    source_schedules,
)
from trapline.pipeline.ingest.source_pages import (
    CRAWL_DEPTH,
    CRAWL_LIMIT,
    FetchRequest,
    JobParameters,
)
from trapline.pipeline.sql import sources as reads
from trapline.pipeline.sql.sources import SourceDetails
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
        owner = None
        if application is not None:
            owner = (await applications.find(conn, organisation_id, application)).id
        rows = await reads.list_sources(
            conn,
            organisation_id=organisation_id,
            application_id=owner,
            status=status,
            kind=None,
            after_at=_FIRST,
            after_id=UUID(int=0),
            most=most,
        )
    lines = [_fields(row) if as_json else _line(row) for row in rows]
    terminal.show(lines, as_json=as_json)


@command.command("show")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, source: UUID, org: str, as_json: bool) -> None:
    """Show a source and its progress.

    \b
    Example: trapline sources show 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await source_operations.show(conn, organisation_id, SourceId(source))
        counts = await reads.count_passages(conn, source_id=row.source_id)
        progress = await source_operations.progress(
            conn, organisation_id, source, now=datetime.now(UTC)
        )
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
@click.option(
    "--limit", type=AtLeast(1), default=CRAWL_LIMIT, show_default=True, help="Most pages."
)
@click.option(
    "--depth", type=AtLeast(0), default=CRAWL_DEPTH, show_default=True, help="Most links away."
)
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
        remote_crawls.require_settings(database.settings.firecrawl)
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        owner = None
        if application is not None:
            owner = (await applications.find(conn, organisation_id, application)).id
        request = FetchRequest(
            organisation_id=organisation_id,
            url=url,
            config=default_config(database.settings.embedding),
            crawl_links=crawl_links,
            limit=limit,
            max_depth=depth,
            application_id=owner,
            rescrape_every=seconds_of(every),
            provider=provider,
        )
        ttl, _ = jobs.retention_times(database.settings.retention)
        source, job_id = await source_pages.fetch(conn, request, JobParameters(ttl))
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
            remote_crawls.require_settings(database.settings.firecrawl)
        ttl, _ = jobs.retention_times(database.settings.retention)
        job_id = await source_pages.refresh(conn, row, JobParameters(ttl))
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
    """Set how often a page or a site is refetched automatically, or pause that.

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
            row = await sources.update(
                conn, row, rescrape_every=seconds_of(every), keep_rescrape=False
            )
            await source_schedules.sync(conn, row)
        if paused is not None:
            await source_schedules.set_paused(conn, row, paused=paused)
        source_row = await source_operations.show(conn, organisation_id, SourceId(source))
    terminal.show_one(_fields(source_row), as_json=as_json)


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
    """Chunk and embed a source again; the old passages are searched until the new ones are complete.

    \b
    Example: trapline sources reprocess 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10 --chunk-tokens 512
    """
    overrides = {"model": model, "chunk_tokens": chunk_tokens, "chunk_overlap": chunk_overlap}
    config = read_config(
        {name: value for name, value in overrides.items() if value is not None},
        default_config(database.settings.embedding),
    )
    Embedders(database.settings.embedding).named(config.model)
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        job_id = await reembed.queue_reembedding(conn, organisation_id, {row.id: config})
    click.echo(f"Job {job_id} makes it anew.")


@command.command("retry")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def retry(database: Database, source: UUID, org: str) -> None:
    """Retry the failed tasks of the source's job in a new job.

    \b
    Example: trapline sources retry 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        if row.job_id is None:
            raise Conflict("Nothing was done for that source, so nothing failed.")
        job_id = await source_operations.retry(conn, JobId(row.job_id), by="cli")
    click.echo(f"Job {job_id} runs it again.")


@command.command("cancel")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def cancel(database: Database, source: UUID, org: str) -> None:
    """Cancel the job that fills a source. For a file, that is its whole upload.

    \b
    Example: trapline sources cancel 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        job_id = await source_operations.cancel(conn, row, by="trapline sources cancel")
    click.echo(f"Job {job_id} is cancelled.")


@command.command("delete")
@click.argument("source", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def delete(database: Database, source: UUID, org: str) -> None:
    """Delete a source with its indexed passages.

    \b
    Example: trapline sources delete 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await sources.get(conn, organisation_id, SourceId(source))
        await source_operations.delete(conn, row)
    click.echo(f"{row.name} is deleted.")


def _fields(row: SourceDetails) -> dict[str, Any]:
    fields = asdict(row)
    del fields["organisation_id"]
    for name, label in (
        ("rescrape_every", "rescrape_seconds"),
        ("fetched_every", "fetched_every_seconds"),
    ):
        every = fields.pop(name)
        fields[label] = None if every is None else every.total_seconds()
    return fields


def _line(row: SourceDetails) -> dict[str, Any]:
    return {
        "id": row.source_id,
        "kind": row.kind,
        "name": row.name,
        "status": row.status,
        "next fetch": "paused" if row.fetching_paused else row.next_fetch_at,
        "error": row.error,
    }
