"""Middleware that gives each request a trace id and measures its time."""

import time
from typing import Final
from uuid import UUID, uuid4

from prometheus_client import Histogram
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trapline import logs
from trapline.measure import ApiRequest, Recorder
from trapline.model import OrganisationId

REQUEST_SECONDS = Histogram(
    "trapline_http_request_seconds",
    "Time to answer a request, by route.",
    ("method", "route", "status"),
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

log = logs.get_logger(__name__)


# Recorded paths; health checks and documentation pages are no use of the API.
RECORDED: Final = ("/v1/", "/v2/", "/api/", "/upload/")
_ORGANISATION: Final = "organisation_id"


def note_organisation(connection: HTTPConnection, organisation_id: OrganisationId) -> None:
    """Note the organisation of a request for its measurement."""
    setattr(connection.state, _ORGANISATION, organisation_id)


class TraceRequests:
    """ASGI middleware: bind a trace id, return it as X-Request-Id, and measure."""

    def __init__(self, app: ASGIApp, recorder: Recorder | None = None) -> None:
        self.app = app
        self.recorder = recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace_id = _trace_id(scope)
        logs.bind_trace(trace_id)
        status = 500
        started = time.perf_counter()

        async def send_traced(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", str(trace_id).encode()),
                ]
            await send(message)

        try:
            await self.app(scope, receive, send_traced)
        finally:
            # The route's template, not the path: labels must stay few.
            route = getattr(scope.get("route"), "path", "none")
            elapsed = time.perf_counter() - started
            REQUEST_SECONDS.labels(scope["method"], route, status).observe(elapsed)
            log.debug("answered", method=scope["method"], path=scope["path"], status=status)
            if self.recorder is not None and scope["path"].startswith(RECORDED):
                self.recorder.request(_measured(scope, route, status, elapsed, trace_id))


def _measured(scope: Scope, route: str, status: int, seconds: float, trace_id: UUID) -> ApiRequest:
    # The path without its query, which may hold a secret.
    client = scope.get("client")
    return ApiRequest(
        method=scope["method"],
        path=scope["path"],
        route=route,
        status=status,
        milliseconds=seconds * 1000,
        request_id=trace_id,
        organisation_id=scope.get("state", {}).get(_ORGANISATION),
        client=None if client is None else client[0],
        user_agent=_header(scope, b"user-agent"),
    )


def _trace_id(scope: Scope) -> UUID:
    value = _header(scope, b"x-request-id")
    try:
        return uuid4() if value is None else UUID(value)
    except ValueError:
        return uuid4()


def _header(scope: Scope, header: bytes) -> str | None:
    for name, value in scope["headers"]:
        if name == header:
            return str(value.decode("latin-1"))
    return None
