"""The shapes of answers, for the OpenAPI document. What is not asked for is left out, not null."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from trapline.api.firecrawl.refusals import ErrorBody


class Open(BaseModel):
    """An answer that may grow."""

    model_config = ConfigDict(extra="allow")


class DocumentBody(Open):
    """A page in the formats that were asked for."""

    metadata: dict[str, Any]


class DocumentAnswer(Open):
    """One document; or, where a name has no address, why there is none."""

    success: bool
    data: DocumentBody = DocumentBody(metadata={})
    error: str = ""


class Started(Open):
    """A job that was started."""

    success: Literal[True]
    id: str
    url: str


class StatusAnswer(Open):
    """How far a crawl or a batch is, and a page of its documents."""

    success: bool
    status: Literal["scraping", "completed", "failed", "cancelled"]
    completed: int
    total: int
    creditsUsed: int  # noqa: N815 (as it is on the wire)
    expiresAt: str  # noqa: N815
    data: list[DocumentBody]


class ErrorsAnswer(Open):
    """What a job could not have."""

    errors: list[dict[str, str]]
    robotsBlocked: list[str]  # noqa: N815


class Cancelled(Open):
    """A job that was cancelled."""

    status: Literal["cancelled"]


class Done(Open):
    """Anything else that went well."""

    success: Literal[True]


class BareError(Open):
    """An error of the calls that have always answered without `success`."""

    error: str


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a call may be answered with."""
    known = {400, 401, 402, 403, 404, 408, 409, 413, 429, 500, 503} | set(statuses)
    return {status: {"model": ErrorBody} for status in sorted(known)}
