"""The embedding models that an organisation's sources use, and those that this server offers."""

import asyncio
from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.knowledge.embedding.embedders import configured_models, default_model, usable_models
from trapline.knowledge.sql import passage_index
from trapline.model import OrganisationId
from trapline.pipeline.sql import sources as queries
from trapline.settings import EmbeddingSettings


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """A model: `sources` were embedded with it, and `renewing` of them now get another one."""

    name: str
    available: bool
    default: bool
    dimension: int | None
    digest: str | None
    sources: int
    renewing: int


async def list_models(
    conn: Connection, organisation_id: OrganisationId, settings: EmbeddingSettings
) -> list[ModelUsage]:
    """Return the models by name, each with the weights that were used last."""
    # The first call reads the models from disk.
    loaded = await asyncio.to_thread(usable_models, settings)
    usage = {
        row.model: row
        for row in await queries.sources_by_model(conn, organisation_id=organisation_id)
    }
    weights = {
        row.name: row
        for row in await passage_index.list_models(conn, organisation_id=organisation_id)
    }
    return [
        ModelUsage(
            name,
            name in loaded,
            name == default_model(settings),
            weights[name].dimension if name in weights else None,
            weights[name].digest or None if name in weights else None,
            usage[name].sources if name in usage else 0,
            usage[name].renewing if name in usage else 0,
        )
        for name in sorted({*configured_models(settings), *usage, *weights})
    ]
