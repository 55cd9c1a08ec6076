"""Around every request: a trace id for its log lines, and its time for Prometheus."""

import time
from uuid import UUID, uuid4

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trapline import logs

REQUEST_SECONDS = Histogram(
    "trapline_http_request_seconds",
    "Time to answer a request, by route.",
    ("method", "route", "status"),
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

log = logs.get_logger(__name__)


class TraceRequests:
    """ASGI middleware: bind a trace id, answer with it, and measure."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

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


def _trace_id(scope: Scope) -> UUID:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            try:
                return UUID(value.decode("ascii"))
            except ValueError:
                break
    return uuid4()
