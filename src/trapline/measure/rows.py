"""What is measured, as it stands in memory until it is written."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from msgspec import Struct, field

from trapline.logs import current_trace
from trapline.model import JobId, OrganisationId, TaskId

# As the columns of others who read them; whoever sends more says nothing more.
LONGEST_URL: Final = 500
LONGEST_ERROR: Final = 2000


def _now() -> datetime:
    return datetime.now(UTC)


class Operation(Struct, frozen=True, kw_only=True, gc=False):
    """One thing that was done to a document, or to a batch of them; an error is why it failed.

    `type` is chunking, embedding, vector, bm25 or another word; `name` tells its ways apart.
    """

    type: str
    name: str
    organisation_id: OrganisationId
    milliseconds: float
    job_id: JobId | None = None
    task_id: TaskId | None = None
    document_url: str | None = None
    error: str | None = None
    request_id: UUID | None = field(default_factory=current_trace)
    extra: Mapping[str, object] | None = None
    at: datetime = field(default_factory=_now)


class ApiRequest(Struct, frozen=True, kw_only=True, gc=False):
    """One request that was answered. `organisation_id` is None where nobody was known to ask."""

    method: str
    path: str
    route: str
    status: int
    milliseconds: float
    request_id: UUID
    organisation_id: OrganisationId | None = None
    client: str | None = None
    user_agent: str | None = None
    at: datetime = field(default_factory=_now)


def text(value: str | None, longest: int) -> str | None:
    """Cut a text to what a column takes. PostgreSQL has no NUL, and UTF-8 no lone surrogates."""
    if value is None:
        return None
    return value[:longest].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
