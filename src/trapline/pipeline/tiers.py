"""The embedding models that an organisation's sources use, and those that could be used here."""

import asyncio
from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.knowledge.embedding.embedders import default_model, named_here, usable
from trapline.knowledge.sql import indexing
from trapline.model import OrganisationId
from trapline.pipeline.sql import ingestion
from trapline.settings import Settings


@dataclass(frozen=True, slots=True)
class Tier:
    """One model: how many sources it was used for, and how many of them get another one now."""

    name: str
    available: bool
    default: bool
    dimension: int | None
    digest: str | None
    sources: int
    renewing: int


async def tiers(
    conn: Connection, organisation_id: OrganisationId, settings: Settings
) -> list[Tier]:
    """Return them by name; the weights that were used last are those that are shown."""
    here = named_here(settings)
    # A model of some size is read from disk for this, the first time.
    loaded = await asyncio.to_thread(usable, settings)
    used = {
        row.model: row
        for row in await ingestion.sources_by_model(conn, organisation_id=organisation_id)
    }
    known = {
        row.name: row for row in await indexing.models_of(conn, organisation_id=organisation_id)
    }
    return [
        Tier(
            name,
            name in loaded,
            name == default_model(settings),
            known[name].dimension if name in known else None,
            known[name].digest or None if name in known else None,
            used[name].sources if name in used else 0,
            used[name].renewing if name in used else 0,
        )
        for name in sorted({*here, *used, *known})
    ]
