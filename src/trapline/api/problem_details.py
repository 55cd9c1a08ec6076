"""Problem details (RFC 9457): the error responses of our own API."""

from http import HTTPStatus

import asyncpg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from trapline.errors import LimitReached, TraplineError, Unavailable


class Problem(BaseModel):
    """What went wrong, for programs and for people."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, object]] | None = None


def install(app: FastAPI) -> None:
    app.add_exception_handler(TraplineError, _on_trapline_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(asyncpg.DataError, _on_data_error)


def problem(
    status: int,
    detail: str,
    *,
    errors: list[dict[str, object]] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, errors=errors)
    return JSONResponse(
        body.model_dump(exclude_none=True),
        status_code=status,
        headers=headers,
        media_type="application/problem+json",
    )


async def _on_trapline_error(request: Request, error: Exception) -> JSONResponse:
    del request
    assert isinstance(error, TraplineError)  # noqa: S101 (Starlette's handler type is wider)
    return error_response(error)


def error_response(error: TraplineError) -> JSONResponse:
    """Return the response for one of our errors."""
    headers: dict[str, str] = {}
    if isinstance(error, LimitReached) and error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    elif isinstance(error, Unavailable):
        headers["Retry-After"] = "5"
    return problem(error.http_status, error.message, headers=headers)


async def _on_invalid_request(request: Request, error: Exception) -> JSONResponse:
    del request
    assert isinstance(error, RequestValidationError)  # noqa: S101 (as above)
    issues: list[dict[str, object]] = [
        {"where": ".".join(map(str, issue["loc"])), "message": issue["msg"]}
        for issue in error.errors()
    ]
    first = issues[0] if issues else {"where": "request", "message": "invalid"}
    return problem(400, f"{first['where']}: {first['message']}", errors=issues)


async def _on_data_error(request: Request, error: Exception) -> JSONResponse:
    """Answer for values that only PostgreSQL refuses, such as a NUL in a text."""
    del request, error
    return problem(400, "A value of the request cannot be stored or compared.")


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    del request
    assert isinstance(error, HTTPException)  # noqa: S101 (as above)
    return problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))
