"""Answers that are not 200, some of them only now and then; which ones is never left to chance."""

from base64 import b64encode
from collections.abc import Iterator
from time import time

from tests.site.host import Family
from tests.site.message import Request, Response, http_date
from tests.site.page import Page, Respond
from tests.site.sheet import markup, sheet
from tests.site.state import State

BASE = "/hostile/status/"
USER, PASSWORD = "walker", "stile"
_CHALLENGE = (
    "<!doctype html><title>Just a moment...</title>"
    '<div id="challenge-running">Checking if the site connection is secure</div>'
    "<noscript>Enable JavaScript and cookies to continue</noscript>"
)
_NOT_FOUND = "Sorry, the page you are looking for does not exist or has been moved."


def demo() -> Iterator[Page]:
    """Yield the one page of the well-behaved part that is gone; what is missing needs no row."""
    yield sheet("/shop/p/sextant", "Gone", "We no longer make the sextant.", status=410)


def pages() -> Iterator[Page]:
    yield Page(target=f"{BASE}limited", respond=_limited)
    yield Page(target=f"{BASE}limited-until", respond=_limited_until)
    yield Page(target=f"{BASE}limited-silent", respond=_always(429))
    yield Page(target=f"{BASE}unavailable", respond=_unavailable)
    yield Page(target=f"{BASE}now-and-then", respond=_now_and_then)
    yield Page(target=f"{BASE}first-fails", respond=_first_fails)
    yield Page(target=f"{BASE}password", respond=_password)
    yield sheet(f"{BASE}soft-404", "Page not found", _NOT_FOUND)
    yield Page(
        target=f"{BASE}challenge",
        status=403,
        body=_CHALLENGE.encode(),
        headers=(("Server", "cloudflare"), ("cf-mitigated", "challenge")),
    )
    yield Page(target=f"{BASE}unasked-304", status=304, body=b"")


def families() -> list[Family]:
    """Return any status as `/hostile/status/NNN`."""

    def status(target: str) -> Page | None:
        code = target.removeprefix(BASE)
        if not code.isdigit() or not 200 <= int(code) <= 599:
            return None
        return sheet(target, f"Status {code}", status=int(code))

    return [Family(BASE, status)]


def _fine(text: str) -> Response:
    return Response(body=markup("Here it is", text).encode())


def _always(status: int, *headers: tuple[str, str]) -> Respond:
    def respond(_request: Request, _state: State) -> Response:
        return Response(status, markup(f"Status {status}", "Not now.").encode(), headers)

    return respond


def _limited(request: Request, state: State) -> Response:
    """Refuse the first `n` requests (default 2) with Retry-After in seconds (`after`, default 1)."""
    if state.visit(request.target) <= request.number("n", 2):
        return _always(429, ("Retry-After", f"{request.number('after', 1):g}"))(request, state)
    return _fine("You waited.")


def _limited_until(request: Request, state: State) -> Response:
    """As `limited`, once, with Retry-After as a date."""
    if state.visit(request.target) == 1:
        date = http_date(time() + request.number("after", 2))
        return _always(429, ("Retry-After", date))(request, state)
    return _fine("You waited.")


def _unavailable(request: Request, state: State) -> Response:
    if state.visit(request.target) <= request.number("n", 1):
        return _always(503, ("Retry-After", f"{request.number('after', 1):g}"))(request, state)
    return _fine("Back again.")


def _now_and_then(request: Request, state: State) -> Response:
    """Fail every third request: the third, the sixth, …"""
    if state.visit(request.target) % 3 == 0:
        return _always(500)(request, state)
    return _fine("It works, mostly.")


def _first_fails(request: Request, state: State) -> Response:
    """Fail the first `n` requests (default 1), then work."""
    if state.visit(request.target) <= request.number("n", 1):
        return _always(int(request.number("status", 500)))(request, state)
    return _fine("It works now.")


def _password(request: Request, state: State) -> Response:
    expected = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    if request.headers.get("authorization") == expected:
        return _fine("You may come in.")
    return _always(401, ("WWW-Authenticate", 'Basic realm="hut"'))(request, state)
