"""Response models for the OpenAPI document. Absent values are left out, not null."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from trapline.api.firecrawl.errors import ErrorBody


class Open(BaseModel):
    """A response that may have further fields."""

    model_config = ConfigDict(extra="allow")


class DocumentBody(Open):
    """A page in the requested formats."""

    metadata: dict[str, Any]


class DocumentAnswer(Open):
    """One document, or the reason why there is none."""

    success: bool
    data: DocumentBody = DocumentBody(metadata={})
    error: str = ""


class Started(Open):
    """A job that was started."""

    success: Literal[True]
    id: str
    url: str


class StatusAnswer(Open):
    """The progress of a crawl or batch, and a page of its documents."""

    success: bool
    status: Literal["scraping", "completed", "failed", "cancelled"]
    completed: int
    total: int
    creditsUsed: int  # noqa: N815 (as it is on the wire)
    expiresAt: str  # noqa: N815
    data: list[DocumentBody]


class ErrorsAnswer(Open):
    """The failed pages of a job."""

    errors: list[dict[str, str]]
    robotsBlocked: list[str]  # noqa: N815


class Cancelled(Open):
    """A job that was cancelled."""

    status: Literal["cancelled"]


class Done(Open):
    """Any other success."""

    success: Literal[True]


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of an endpoint."""
    documented = {400, 401, 402, 403, 404, 408, 409, 413, 429, 500, 503} | set(statuses)
    return {status: {"model": ErrorBody} for status in sorted(documented)}
