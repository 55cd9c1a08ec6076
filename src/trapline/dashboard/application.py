"""The dashboard's ASGI application: its views, error pages and security headers."""

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

import asyncpg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trapline.api import read_retry, request_tracing
from trapline.dashboard import assets, rendering
from trapline.dashboard.live import LiveViews
from trapline.dashboard.session_cookie import set_cookie_header
from trapline.dashboard.viewer import new_token
from trapline.dashboard.views import ROUTERS
from trapline.errors import DatabaseUnavailable, TraplineError, Unauthorised

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none';"
    " base-uri 'none'"
)
_ASSETS: Final = "/assets/{name}"
_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def build(api: FastAPI) -> FastAPI:
    """Return the dashboard over the state of an API application."""
    app = FastAPI(title="Trapline dashboard", openapi_url=None, docs_url=None, redoc_url=None)
    app.state = api.state
    app.state.live_views = LiveViews(app.state.database)
    app.add_api_route(_ASSETS, assets.serve, methods=["GET"], include_in_schema=False)
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(TraplineError, _on_trapline_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(asyncpg.DataError, _on_unstorable)
    app.add_middleware(PageHeaders)
    app.add_middleware(read_retry.ReadRetry, refuse=_unavailable)
    app.add_middleware(request_tracing.TraceRequests)
    return app


def first_segments() -> frozenset[str]:
    """Return the first path segments of all views: the dispatcher sends these here."""
    paths = (getattr(route, "path", "/") for router in ROUTERS for route in router.routes)
    return frozenset(path.split("/")[1] for path in (_ASSETS, *paths))


class PageHeaders:
    """ASGI middleware: security headers, the cookie of a rotated session, no empty parameters."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["query_string"] = _without_empty(scope["query_string"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                token = new_token(scope)
                if token is not None:
                    headers.append("set-cookie", set_cookie_header(Request(scope), token))
            await send(message)

        await self.app(scope, receive, send_with_headers)


def _without_empty(query: bytes) -> bytes:
    """Remove the parameters that a form sends for fields left empty."""
    if b"=&" not in query and not query.endswith(b"="):
        return query
    return urlencode([pair for pair in parse_qsl(query.decode("latin-1")) if pair[1]]).encode()


def _error_page(request: Request, status: int, message: str) -> Response:
    phrase = HTTPStatus(status).phrase
    response = rendering.page(request, None, "error.html", phrase=phrase, message=message)
    response.status_code = status
    return response


async def _on_trapline_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TraplineError)  # noqa: S101 (Starlette's handler type is wider)
    if isinstance(error, Unauthorised) and request.method == "GET" and _wants_page(request):
        target = quote(request.url.path + ("?" + request.url.query if request.url.query else ""))
        return RedirectResponse(
            f"{rendering.prefix_of(request)}/sign-in?next={target}", HTTPStatus.SEE_OTHER
        )
    return _error_page(request, error.http_status, error.message)


def _wants_page(request: Request) -> bool:
    return "text/event-stream" not in request.headers.get("accept", "")


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (as above)
    first = error.errors()[0]
    return _error_page(request, 400, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (as above)
    return _error_page(request, error.status_code, str(error.detail))


async def _on_unstorable(request: Request, error: Exception) -> Response:
    """Answer for values that only PostgreSQL refuses, such as a NUL in a text."""
    del error
    return _error_page(request, 400, "A value of the request cannot be stored or compared.")


def _unavailable(scope: Scope, error: DatabaseUnavailable) -> Response:
    return _error_page(Request(scope), error.http_status, error.message)
