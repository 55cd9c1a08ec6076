"""`/api/applications`: applications, which group knowledge sources."""

from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant, Writer
from trapline.db.keyset import FIRST_NAME, Order
from trapline.knowledge import applications
from trapline.knowledge.sql import applications as queries
from trapline.knowledge.sql.applications import ApplicationRow
from trapline.pipeline.ingest import source_operations, source_schedules

router = APIRouter(prefix="/api/applications", tags=["knowledge"])

_BY_NAME = Order(queries.list_applications, ("after",), lambda row: row.name, FIRST_NAME)

Name = Annotated[str, Field(min_length=1, max_length=300, examples=["support-bot"])]
Seconds = Annotated[
    float | None,
    Field(
        ge=60,
        le=366 * 86400,
        description="How often sources are fetched again, in seconds; null: never.",
        examples=[86400],
    ),
]


class Application(BaseModel):
    """What sources are for."""

    id: UUID
    name: str
    rescrape_seconds: float | None
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: ApplicationRow) -> "Application":
        return cls(**asdict(row), rescrape_seconds=seconds_of(row.rescrape_every))


class NewApplication(BaseModel):
    """What is needed to make one."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    rescrape_seconds: Seconds = None


class ApplicationChange(BaseModel):
    """What is to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    rescrape_seconds: Seconds = None


class Deleted(BaseModel):
    """How many sources went."""

    sources: int


class Progress(BaseModel):
    """How many items there are, and how far they are; they add up to the total."""

    model_config = ConfigDict(from_attributes=True)

    total: int
    completed: int
    failed: int
    processing: int
    pending: int
    cancelled: int


def seconds_of(every: timedelta | None) -> float | None:
    return None if every is None else every.total_seconds()


def interval_of(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


@router.get("")
async def list_applications(
    conn: Tenant, principal: Reader, cursor: Cursor = None, most: Most = 100
) -> Page[Application]:
    """List the organisation's applications by name."""
    filters = {"organisation_id": principal.organisation_id}
    rows, following = await pagination.read_order(conn, _BY_NAME, filters, cursor, most)
    return Page(items=[Application.of(row) for row in rows], next=following)


@router.post("", status_code=201)
async def create_application(conn: Tenant, principal: Writer, new: NewApplication) -> Application:
    """Create an application."""
    every = interval_of(new.rescrape_seconds)
    row = await applications.create(conn, principal.organisation_id, new.name, rescrape_every=every)
    return Application.of(row)


@router.get("/{reference}")
async def show_application(conn: Tenant, principal: Reader, reference: str) -> Application:
    """Show an application, by its id or name."""
    return Application.of(await applications.find(conn, principal.organisation_id, reference))


@router.patch("/{reference}")
async def change_application(
    conn: Tenant, principal: Writer, reference: str, change: ApplicationChange
) -> Application:
    """Rename an application, or say how often its sources are fetched again."""
    row = await applications.find(conn, principal.organisation_id, reference)
    changed = await applications.update(
        conn,
        row,
        name=change.name,
        rescrape_every=interval_of(change.rescrape_seconds),
        keep_rescrape="rescrape_seconds" not in change.model_fields_set,
    )
    await source_schedules.sync_application(conn, row.id)
    return Application.of(changed)


@router.delete("/{reference}")
async def delete_application(conn: Tenant, principal: Writer, reference: str) -> Deleted:
    """Delete an application with its sources and their indexed passages."""
    row = await applications.find(conn, principal.organisation_id, reference)
    return Deleted(sources=await source_operations.delete_application(conn, row))


@router.get("/{reference}/progress")
async def application_progress(conn: Tenant, principal: Reader, reference: str) -> Progress:
    """Say how far an application is with what was asked of it in the last 24 hours."""
    row = await applications.find(conn, principal.organisation_id, reference)
    progress = await source_operations.progress(
        conn, principal.organisation_id, row.id, now=datetime.now(UTC)
    )
    return Progress.model_validate(progress)
