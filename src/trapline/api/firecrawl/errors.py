"""Error responses in Firecrawl's form: `{success: false, error, code?, details?}`."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from trapline.errors import (
    InvalidInput,
    LimitReached,
    QuotaExceeded,
    TooLarge,
    TraplineError,
    Unavailable,
)

MOST_JSON: Final = 10 * 2**20
CUSTOM: Final = "custom"
"""The type of a validation error whose message is meant for people."""


class Refusal(TraplineError):
    """An error that has a status and a code of its own in Firecrawl's contract."""

    def __init__(
        self, status: int, error: str, code: str | None = None, details: Any = None
    ) -> None:
        super().__init__(error)
        self.status = status
        self.code = code
        self.details = details


class ErrorBody(BaseModel):
    """The body of every error response."""

    success: bool = False
    error: str
    code: str | None = None
    details: Any = None


Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Body = TypeVar("Body", bound=BaseModel)


class FirecrawlRoute(APIRoute):
    """A route that answers errors in Firecrawl's form and bounds request bodies."""

    most_bytes: int = MOST_JSON

    def get_route_handler(self) -> Handler:
        handle = self.handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(_bounded(request, self.most_bytes))
            except RequestValidationError as error:
                return validation_response(error)
            except TraplineError as error:
                return error_response(error)
            except HTTPException as error:
                # FastAPI takes whatever stops the reading of a body for a malformed one.
                if isinstance(error.__cause__, TraplineError):
                    return error_response(error.__cause__)
                return answer(error.status_code, error=str(error.detail))

        return answered

    def handler(self) -> Handler:
        """Return the handler of a request; it raises errors."""
        return super().get_route_handler()


async def valid_body(request: Request, model: type[Body]) -> Body | None:
    """Return the body of a valid request, else None.

    FastAPI resolves an endpoint's parameters anew for each request, which is a third of a scrape's
    overhead. On None the caller takes FastAPI's way, which reports the error; the request keeps the
    bytes that were read.
    """
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return None
    try:
        return model.model_validate(await request.json())
    except (ValueError, RecursionError, ClientDisconnect):
        return None


def answer(
    status: int,
    /,
    *,
    headers: dict[str, str] | None = None,
    success: bool | None = False,
    **body: Any,
) -> Response:
    """Return a JSON response without the fields that are None."""
    fields = {} if success is None else {"success": success}
    fields |= {name: value for name, value in body.items() if value is not None}
    return Response(
        msgspec.json.encode(fields), status, headers=headers, media_type="application/json"
    )


def error_response(error: TraplineError) -> Response:
    """Return the response for one of our errors, as Firecrawl's clients read it."""
    if isinstance(error, Refusal):
        return answer(error.status, error=error.message, code=error.code, details=error.details)
    code = "BAD_REQUEST" if isinstance(error, InvalidInput) else None
    headers: dict[str, str] = {}
    if isinstance(error, LimitReached) and error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    elif isinstance(error, Unavailable):
        headers["Retry-After"] = "5"
    # Pages are credits; the contract has a status of its own for those.
    status = 402 if isinstance(error, QuotaExceeded) else error.http_status
    return answer(status, headers=headers, error=error.message, code=code)


def validation_response(error: RequestValidationError) -> Response:
    """Return the response for an invalid request: one sentence and all details."""
    issues = error.errors()
    if any(issue["type"] == "json_invalid" for issue in issues):
        return answer(400, error="Bad request, malformed JSON", code="BAD_REQUEST_INVALID_JSON")
    details = [_issue(issue) for issue in issues]
    custom = [issue["msg"] for issue in issues if issue["type"] == CUSTOM]
    return answer(
        400, error=custom[0] if custom else "Bad Request", code="BAD_REQUEST", details=details
    )


def _issue(issue: dict[str, Any]) -> dict[str, Any]:
    where = [part for part in issue["loc"][1:] if not str(part).startswith("function-")]
    code = "unrecognized_keys" if issue["type"] == "extra_forbidden" else issue["type"]
    return {"code": code, "path": where, "message": issue["msg"]}


def _bounded(request: Request, most: int) -> Request:
    """Refuse a body of more than `most` bytes, whatever its header announces."""
    receive, read = request.receive, 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > most:
            raise TooLarge(f"The body is larger than {most:,} bytes.")
        return message

    return Request(request.scope, counted)
