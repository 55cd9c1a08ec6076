"""`/api/models`: the embedding models."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from trapline.api.principal import Reader, Tenant
from trapline.pipeline.ingest import embedding_models

router = APIRouter(prefix="/api/models", tags=["knowledge"])


class Model(BaseModel):
    """One embedding model, and how many of the organisation's sources it was used for."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    available: Annotated[bool, Field(description="It can be used by this server.")]
    default: Annotated[bool, Field(description="New sources are embedded with it.")]
    dimension: int | None
    digest: Annotated[str | None, Field(description="Tells weights of the same name apart.")]
    sources: int
    renewing: Annotated[int, Field(description="Sources that get another model now.")]


@router.get("")
async def list_models(request: Request, conn: Tenant, principal: Reader) -> list[Model]:
    """List the embedding models that are used, or could be."""
    models = await embedding_models.list_models(
        conn, principal.organisation_id, request.app.state.settings.embedding
    )
    return [Model.model_validate(one) for one in models]
