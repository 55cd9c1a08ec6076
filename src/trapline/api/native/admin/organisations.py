"""`/api/organisations`: organisations and their limits."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from trapline.api.principal import OrganisationAdmin, Reader, System, Visible
from trapline.db import tenancy
from trapline.db.sql import tenancy as queries
from trapline.model import OrganisationId

router = APIRouter(prefix="/api/organisations", tags=["organisations"])

Name = Annotated[str, Field(min_length=1, max_length=200, examples=["Acme"])]
Limit = Annotated[int | None, Field(gt=0, le=2**31 - 1, description="null: no limit")]


class Organisation(BaseModel):
    """An owner of data."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    name: str
    foreign_id: str | None
    max_concurrency: int | None
    max_pages_per_day: int | None
    created_at: datetime
    updated_at: datetime


class NewOrganisation(BaseModel):
    """What is needed to create one."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    owner: Annotated[
        str | None,
        Field(max_length=200, description="The id another system knows it by; need not be a UUID."),
    ] = None
    max_concurrency: Limit = None
    max_pages_per_day: Limit = None


class OrganisationLimits(BaseModel):
    """Both limits at once."""

    model_config = ConfigDict(extra="forbid")

    max_concurrency: Limit
    max_pages_per_day: Limit


class OrganisationName(BaseModel):
    """The name alone."""

    model_config = ConfigDict(extra="forbid")

    name: Name


@router.get("")
async def list_organisations(conn: Visible, principal: Reader) -> list[Organisation]:
    """List the caller's organisation; the administrator sees all."""
    del principal
    return [Organisation.model_validate(row) for row in await queries.list_organisations(conn)]


@router.post("", status_code=201)
async def create_organisation(conn: System, new: NewOrganisation) -> Organisation:
    """Create an organisation. For the administrator."""
    row = await tenancy.create_organisation(
        conn,
        new.name,
        owner=new.owner,
        max_concurrency=new.max_concurrency,
        max_pages_per_day=new.max_pages_per_day,
    )
    return Organisation.model_validate(row)


@router.get("/{reference}")
async def get_organisation(conn: Visible, principal: Reader, reference: str) -> Organisation:
    """Find an organisation by id, name or foreign owner id."""
    del principal
    return Organisation.model_validate(await tenancy.find_organisation(conn, reference))


@router.patch("/{organisation_id}")
async def rename_organisation(
    conn: Visible, principal: OrganisationAdmin, organisation_id: UUID, change: OrganisationName
) -> Organisation:
    """Rename an organisation."""
    del principal
    row = await tenancy.rename_organisation(conn, OrganisationId(organisation_id), change.name)
    return Organisation.model_validate(row)


@router.put("/{organisation_id}/limits")
async def limit_organisation(
    conn: System, organisation_id: UUID, limits: OrganisationLimits
) -> Organisation:
    """Set the limits of an organisation. For the administrator."""
    row = await tenancy.limit_organisation(
        conn,
        OrganisationId(organisation_id),
        max_concurrency=limits.max_concurrency,
        max_pages_per_day=limits.max_pages_per_day,
    )
    return Organisation.model_validate(row)


@router.delete("/{organisation_id}", status_code=204)
async def delete_organisation(conn: System, organisation_id: UUID) -> None:
    """Delete an organisation with all that it owns. For the administrator."""
    await tenancy.delete_organisation(conn, OrganisationId(organisation_id))
