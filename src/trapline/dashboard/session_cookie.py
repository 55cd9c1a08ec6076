"""The session cookie: HttpOnly, SameSite=Lax, Secure where the browser came by TLS."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from trapline.dashboard.rendering import prefix_of
from trapline.dashboard.viewer import COOKIE
from trapline.db.sessions import LIFETIME

_SECONDS: Final = int(LIFETIME.total_seconds())


def is_secure(request: Request) -> bool:
    """Tell whether the browser came by TLS: to us, or to the proxy before us."""
    return "https" in {request.url.scheme, request.headers.get("x-forwarded-proto")}


def set_cookie(request: Request, response: Response, token: str) -> None:
    response.set_cookie(
        COOKIE,
        token,
        max_age=_SECONDS,
        path=prefix_of(request) or "/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )


def clear_cookie(request: Request, response: Response) -> None:
    response.delete_cookie(COOKIE, path=prefix_of(request) or "/")


def set_cookie_header(request: Request, token: str) -> str:
    """Return the header that gives the browser a new token."""
    response = Response()
    set_cookie(request, response, token)
    return response.headers["set-cookie"]
