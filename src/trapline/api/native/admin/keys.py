"""`/api/keys`: API keys of the caller's organisation."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field

from trapline.api.principal import OrganisationAdmin, Tenant
from trapline.db import tenancy
from trapline.db.sql import tenancy as queries
from trapline.errors import Forbidden

router = APIRouter(prefix="/api/keys", tags=["organisations"])

Scope = Literal["read", "write", "admin"]


class Key(BaseModel):
    """A key as it is remembered: without its secret."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    organisation_id: UUID
    name: str
    prefix: str
    scopes: list[Scope]
    created_by: UUID | None
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewKey(BaseModel):
    """What is needed to create one."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, examples=["laptop"])]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] = ["read", "write"]


class IssuedKey(Key):
    """A new key with its secret, which is never shown again."""

    key: Annotated[str, Field(examples=["trp_6f3c…"])]


@router.get("")
async def list_keys(conn: Tenant, principal: OrganisationAdmin) -> list[Key]:
    """List the organisation's keys, revoked ones too."""
    rows = await queries.list_keys(conn, organisation_id=principal.organisation_id)
    return [Key.model_validate(row) for row in rows]


@router.post("", status_code=201)
async def create_key(conn: Tenant, principal: OrganisationAdmin, new: NewKey) -> IssuedKey:
    """Create a key. The answer is the only place where its secret appears."""
    if not set(new.scopes) <= principal.scopes:
        raise Forbidden("A key cannot make a key that may do more than itself.")
    issued = await tenancy.issue_key(conn, principal.organisation_id, new.name, new.scopes)
    return IssuedKey.model_validate(asdict(issued.row) | {"key": issued.secret})


@router.delete("/{reference}", status_code=200)
async def revoke_key(conn: Tenant, principal: OrganisationAdmin, reference: str) -> Key:
    """Revoke a key at once, by its id or its prefix."""
    return Key.model_validate(await tenancy.revoke_key(conn, principal.organisation_id, reference))
