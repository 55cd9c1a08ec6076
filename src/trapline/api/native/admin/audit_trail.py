"""`/api/audit-trail`: who changed what, and when."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import OrganisationAdmin, Tenant
from trapline.db import audit_trail

router = APIRouter(prefix="/api/audit-trail", tags=["organisations"])

_Word = Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")]


class AuditEntry(BaseModel):
    """One change through the API or the dashboard."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "id": 4711,
                "created_at": "2026-11-15T10:00:00Z",
                "actor": "laptop",
                "api_key_id": "0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10",
                "channel": "dashboard",
                "action": "cancel_job",
                "target": "0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f11",
                "detail": {},
                "client": "127.0.0.1",
            }
        },
    )

    id: int
    created_at: datetime
    actor: Annotated[str, Field(description="Name of the API key, or `administrator`.")]
    api_key_id: UUID | None
    channel: Literal["api", "dashboard"]
    action: str
    target: Annotated[str | None, Field(description="Id of what was changed.")]
    detail: dict[str, Any]
    client: Annotated[str | None, Field(description="Address that the request came from.")]


@router.get("")
async def list_audit_entries(
    conn: Tenant,
    principal: OrganisationAdmin,
    action: _Word = None,
    actor: _Word = None,
    target: _Word = None,
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[AuditEntry]:
    """List the changes of an organisation, newest first."""
    entries = audit_trail.entries_of(
        principal.organisation_id, action=action, actor=actor, target=target
    )
    rows, following = await pagination.read_page(conn, entries, "newest", cursor, most)
    return Page(items=[AuditEntry.model_validate(row) for row in rows], next=following)
