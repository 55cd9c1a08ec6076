"""`/api/members`: the people of the caller's organisation."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from trapline.api.principal import OrganisationAdmin, Reader, Tenant
from trapline.db import tenancy
from trapline.db.sql import tenancy as queries
from trapline.model import MemberId

router = APIRouter(prefix="/api/members", tags=["organisations"])


class Member(BaseModel):
    """A person of an organisation."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    organisation_id: UUID
    email: str
    full_name: str | None
    created_at: datetime
    updated_at: datetime


class NewMember(BaseModel):
    """What is needed to add one."""

    model_config = ConfigDict(extra="forbid")

    email: Annotated[str, Field(min_length=3, max_length=320, examples=["ada@example.com"])]
    full_name: Annotated[str | None, Field(max_length=200, examples=["Ada Lovelace"])] = None


@router.get("")
async def list_members(conn: Tenant, principal: Reader) -> list[Member]:
    """List the members of the caller's organisation."""
    rows = await queries.list_members(conn, organisation_id=principal.organisation_id)
    return [Member.model_validate(row) for row in rows]


@router.post("", status_code=201)
async def add_member(conn: Tenant, principal: OrganisationAdmin, new: NewMember) -> Member:
    """Add a member."""
    row = await tenancy.add_member(conn, principal.organisation_id, new.email, new.full_name)
    return Member.model_validate(row)


@router.delete("/{member_id}", status_code=204)
async def remove_member(conn: Tenant, principal: OrganisationAdmin, member_id: UUID) -> None:
    """Remove a member."""
    await tenancy.remove_member(conn, principal.organisation_id, MemberId(member_id))
