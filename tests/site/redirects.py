"""Every way to send a visitor elsewhere: once, in chains, in circles, and to where he must not go."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.site.host import Family
from tests.site.message import Request, Response
from tests.site.page import Hop, Page, Redirect
from tests.site.sheet import markup, sheet
from tests.site.state import State

BASE = "/hostile/redirect/"
CODES = (301, 302, 303, 307, 308)
LONG_CHAIN = 30

UNSAFE = {
    "loopback": "http://127.0.0.1:1/",
    "loopback-name": "http://localhost:1/",
    "loopback-decimal": "http://2130706433:1/",
    "loopback-hex": "http://0x7f.1:1/",
    "loopback-octal": "http://0177.0.0.1:1/",
    "loopback-v6": "http://[::1]:1/",
    "loopback-mapped": "http://[::ffff:127.0.0.1]:1/",
    "zero": "http://0.0.0.0:1/",
    "private-10": "http://10.0.0.1/",
    "private-172": "http://172.16.0.1/",
    "private-192": "http://192.168.0.1/",
    "private-v6": "http://[fd00::1]/",
    "carrier": "http://100.64.0.1/",
    "link-local": "http://169.254.10.1/",
    "link-local-v6": "http://[fe80::1]/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "file": "file:///etc/passwd",
    "javascript": "javascript:alert(1)",
    "data": "data:text/html,hello",
    "ftp": "ftp://other.test/",
    "userinfo": "http://trapline.test@10.0.0.1/",
}
"""Where a redirect must never be followed to, by the name under `/hostile/redirect/unsafe/`."""


def demo() -> Iterator[Page]:
    """Yield the redirects of the well-behaved part."""
    yield hop("/old-journal/", "/journal/")
    yield hop("/go/repair", "/go/repair-ingest_client", 302)
    yield hop("/go/repair-ingest_client", "/services/repair/", 307)
    yield meta("/news.html", "/journal/")


def pages(port: int) -> Iterator[Page]:
    yield sheet(f"{BASE}end", "The end of the redirects")
    for code in CODES:
        yield hop(f"{BASE}{code}", f"{BASE}end", code)
    yield from _chains()
    yield from _circles()
    yield from _documents()
    yield from _across_hosts(port)
    yield from _odd_locations()
    for name, to in UNSAFE.items():
        yield hop(f"{BASE}unsafe/{name}", to, 302)
    yield Page(target=f"{BASE}cookie", respond=_needs_cookie)


def families() -> list[Family]:
    """Return the redirect that never ends: each step leads to a URL not seen before."""

    def endless(target: str) -> Page | None:
        step = target.removeprefix(f"{BASE}endless/")
        return hop(target, f"{BASE}endless/{int(step) + 1}", 302) if step.isdigit() else None

    return [Family(f"{BASE}endless/", endless)]


def hop(target: str, to: str, status: int = 301) -> Page:
    """Return an HTTP redirect."""
    return Page(
        target=target,
        status=status,
        body=markup("Moved", f"This page is now at {to}").encode(),
        headers=(("Location", to),),
        redirect=Redirect(to),
    )


def meta(target: str, to: str, seconds: int = 0, content: str | None = None) -> Page:
    """Return a page that moves on by a meta refresh."""
    content = content or f"{seconds}; url={to}"
    return sheet(
        target,
        "Moved",
        "You will be taken there in a moment.",
        head=f'<meta http-equiv="refresh" content="{content}">',
        redirect=Redirect(to, Hop.META_REFRESH),
    )


def canonical(target: str, to: str, **fields: Any) -> Page:
    """Return a page with content that names another URL as its own."""
    return sheet(
        target,
        "A copy",
        "The same words as elsewhere.",
        head=f'<link rel="canonical" href="{to}">',
        redirect=Redirect(to, Hop.CANONICAL),
        **fields,
    )


def _chains() -> Iterator[Page]:
    steps = [f"{BASE}mixed/{n}" for n in range(len(CODES))] + [f"{BASE}end"]
    for code, (here, there) in zip(CODES, pairwise(steps), strict=True):
        yield hop(here, there, code)
    for n in range(LONG_CHAIN):
        to = f"{BASE}chain/{n + 1}" if n + 1 < LONG_CHAIN else f"{BASE}end"
        yield hop(f"{BASE}chain/{n}", to)


def _circles() -> Iterator[Page]:
    yield hop(f"{BASE}loop/1", f"{BASE}loop/1")
    yield hop(f"{BASE}loop/2a", f"{BASE}loop/2b", 302)
    yield hop(f"{BASE}loop/2b", f"{BASE}loop/2a", 302)
    for here, there in ("ab", "bc", "ca"):
        yield hop(f"{BASE}loop/3{here}", f"{BASE}loop/3{there}", 307)
    yield meta(f"{BASE}loop/meta", f"{BASE}loop/meta-back")
    yield hop(f"{BASE}loop/meta-back", f"{BASE}loop/meta")
    yield canonical(f"{BASE}loop/canonical-a", f"{BASE}loop/canonical-b")
    yield canonical(f"{BASE}loop/canonical-b", f"{BASE}loop/canonical-a")


def _documents() -> Iterator[Page]:
    """Redirects that stand in the document, or in a header that is not Location."""
    end = f"{BASE}end"
    yield meta(f"{BASE}meta", end)
    yield meta(f"{BASE}meta-later", end, seconds=30)
    yield meta(f"{BASE}meta-quoted", end, content=f"0;URL='{end}'")
    yield meta(f"{BASE}meta-relative", end, content="0; url=end")
    yield sheet(
        f"{BASE}meta-self", "Reloads itself", head='<meta http-equiv="refresh" content="300">'
    )
    yield canonical(f"{BASE}canonical", end)
    yield canonical(f"{BASE}canonical-relative", "end")
    yield canonical(f"{BASE}canonical-broken", f"{BASE}nowhere")
    yield sheet(
        f"{BASE}canonical-header",
        "A copy by header",
        headers=(("Link", f'<{end}>; rel="canonical"'),),
        redirect=Redirect(end, Hop.CANONICAL),
    )
    yield sheet(
        f"{BASE}refresh-header",
        "Moved by header",
        headers=(("Refresh", f"0; url={end}"),),
        redirect=Redirect(end, Hop.REFRESH_HEADER),
    )
    yield sheet(
        f"{BASE}script",
        "Moved by script",
        head=f'<script>location.replace("{end}")</script>',
        redirect=Redirect(end, Hop.SCRIPT),
    )


def _across_hosts(port: int) -> Iterator[Page]:
    other = f"http://other.test:{port}"
    yield hop(f"{BASE}other-host", f"{other}/")
    yield hop(f"{BASE}other-host-and-back", f"{other}/back")
    yield canonical(f"{BASE}canonical-other-host", f"{other}/")
    yield hop(f"{BASE}forbidden", "/private/ledger/", 302)
    yield hop(f"{BASE}unknown-host", "http://does-not-exist.invalid/")
    yield hop(f"{BASE}www", f"http://www.trapline.test:{port}{BASE}end")


def _odd_locations() -> Iterator[Page]:
    end = f"{BASE}end"
    yield hop(f"{BASE}relative", "end")
    yield hop(f"{BASE}dots", "./x/../end")
    yield hop(f"{BASE}fragment", f"{end}#part")
    yield hop(f"{BASE}query", f"{end}?a=1&b=2")
    yield hop(f"{BASE}space", f"{BASE}a b", 302)
    yield sheet(f"{BASE}a%20b", "A target with a space")
    yield hop(f"{BASE}to-404", f"{BASE}nowhere")
    yield Page(target=f"{BASE}no-location", status=302, body=b"Somewhere else.")
    yield Page(target=f"{BASE}empty-location", status=302, headers=(("Location", ""),))
    yield Page(
        target=f"{BASE}two-locations",
        status=302,
        headers=(("Location", end), ("Location", f"{BASE}nowhere")),
        redirect=Redirect(end),
    )
    yield Page(target=f"{BASE}multiple-choices", status=300, body=b"Choose.")
    yield Page(target=f"{BASE}bad-location", status=302, headers=(("Location", "http://[::"),))


def _needs_cookie(request: Request, _state: State) -> Response:
    """Redirect to itself until the client sends the cookie that it was given."""
    if "trail=walked" in request.headers.get("cookie", ""):
        return Response(body=markup("With cookie", "The cookie came back.").encode())
    headers = (("Location", request.target), ("Set-Cookie", "trail=walked; Path=/hostile/"))
    return Response(302, headers=headers)
