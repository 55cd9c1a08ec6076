"""Around every request: a trace id for its log lines, its time for Prometheus and the metrics."""

import time
from typing import Final
from uuid import UUID, uuid4

from prometheus_client import Histogram
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trapline import logs
from trapline.measure import Recorder, Request
from trapline.model import OrganisationId

REQUEST_SECONDS = Histogram(
    "trapline_http_request_seconds",
    "Time to answer a request, by route.",
    ("method", "route", "status"),
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

log = logs.get_logger(__name__)


# What is recorded; health checks and pages of documentation say nothing about anyone's use.
RECORDED: Final = ("/v1/", "/v2/", "/api/", "/upload/")
_ORGANISATION: Final = "organisation_id"


def note_asker(connection: HTTPConnection, organisation_id: OrganisationId) -> None:
    """Remember, with a request, whose it is."""
    setattr(connection.state, _ORGANISATION, organisation_id)


class TraceRequests:
    """ASGI middleware: bind a trace id, answer with it, and measure."""

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
            # The route's template, never the path itself: labels must stay few.
            route = getattr(scope.get("route"), "path", "none")
            elapsed = time.perf_counter() - started
            REQUEST_SECONDS.labels(scope["method"], route, status).observe(elapsed)
            log.debug("answered", method=scope["method"], path=scope["path"], status=status)
            if self.recorder is not None and scope["path"].startswith(RECORDED):
                self.recorder.request(_measured(scope, route, status, elapsed, trace_id))


def _measured(scope: Scope, route: str, status: int, seconds: float, trace_id: UUID) -> Request:
    # The path without its query: what stands there may be a secret.
    client = scope.get("client")
    return Request(
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
    given = _header(scope, b"x-request-id")
    try:
        return uuid4() if given is None else UUID(given)
    except ValueError:
        return uuid4()


def _header(scope: Scope, wanted: bytes) -> str | None:
    for name, value in scope["headers"]:
        if name == wanted:
            return str(value.decode("latin-1"))
    return None
