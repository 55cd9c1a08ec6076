"""Rules for robots: those of the main host, and one host for every way to get robots.txt wrong."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.site.host import Host
from tests.site.message import Headers, Request, Response
from tests.site.page import Page, Redirect, Respond
from tests.site.rules import OPEN, Group, Rules
from tests.site.sheet import markup, sheet
from tests.site.state import State
from tests.site.wire import Wire

TARGET = "/robots.txt"
PLAIN = "text/plain; charset=utf-8"
DOMAIN = "robots.test"
_LIMIT = 500 * 1024

MAIN_RULES = Rules(
    groups=(
        Group(
            ("*",),
            (
                ("disallow", "/private/"),
                ("allow", "/private/press-kit/"),
                ("disallow", "/hostile/"),
                ("disallow", "/search"),
                ("disallow", "/*?sort="),
                ("disallow", "/*.bak$"),
            ),
        ),
        Group(("SlowBot", "SlowBot-Images"), (("disallow", "/shop/"),), crawl_delay=2),
        Group(("GreedyBot",), (("disallow", "/"),)),
    ),
    sitemaps=("/sitemap.xml", "/sitemaps/manual.txt"),
)
CLOSED = Rules((Group(("*",), (("disallow", "/"),)),))
_HALF = Rules((Group(("*",), (("disallow", "/closed/"),)),))


def robots_page(rules: Callable[[str], Rules]) -> Page:
    """Return robots.txt, written anew for each request from the rules that hold then."""

    def respond(request: Request, _state: State) -> Response:
        body = rules(request.host).text(request.origin).encode()
        return Response(body=body, content_type=PLAIN)

    return Page(target=TARGET, respond=respond, content_type=PLAIN)


def hosts(rules: Callable[[str], Rules]) -> Iterator[Host]:
    """Yield NAME.robots.test for every NAME; `/` and `/open/` are open, `/closed/` is a question."""
    for name, (page, meant) in (_by_text() | _by_answer()).items():
        host = Host(f"{name}.{DOMAIN}", rules=meant)
        host.add(_little_site())
        host.add([replace(page, target=TARGET)])
        yield host
    for name, meant in _well_written().items():
        host = Host(f"{name}.{DOMAIN}", rules=meant)
        host.add(_little_site())
        host.add([robots_page(rules)])
        yield host


def _little_site() -> Iterator[Page]:
    yield sheet("/", "Door", links=["/open/", "/closed/", "/closed/but-open/", "/a%20b", "/x.bak"])
    for target in ("/open/", "/closed/", "/closed/but-open/", "/a%20b", "/x.bak"):
        yield sheet(target, f"Room {target}")


def _well_written() -> dict[str, Rules]:
    return {
        "half": _HALF,
        "closed": CLOSED,
        "delay": Rules((Group(("*",), (("disallow", "/closed/"),), crawl_delay=1),)),
        "wildcards": Rules(
            (
                Group(
                    ("*",),
                    (("disallow", "/*.bak$"), ("disallow", "/clo*/"), ("allow", "/closed/but")),
                ),
            )
        ),
        "groups": Rules(
            (
                Group(("other", "another"), (("disallow", "/"),)),
                Group(("trapline",), (("disallow", "/closed/"),)),
                Group(("*",), (("disallow", "/open/"),)),
            )
        ),
    }


def _by_text() -> dict[str, tuple[Page, Rules]]:
    """Texts that are readable, each with what RFC 9309 makes of it."""
    rule = "User-agent: *\nDisallow: /closed/\n"
    filler = "# " + "x" * 97 + "\n"
    texts: dict[str, tuple[bytes, Rules]] = {
        "empty": (b"", OPEN),
        "mark": (b"\xef\xbb\xbf" + rule.encode(), _HALF),
        "windows-lines": (rule.replace("\n", "\r\n").encode(), _HALF),
        "old-mac-lines": (rule.replace("\n", "\r").encode(), _HALF),
        "odd-case": (b"USER-AGENT : *\nDISALLOW:/closed/   # the rest is open\n", _HALF),
        "interrupted-group": (
            b"User-agent: *\nSitemap: http://other.test/sitemap.xml\nDisallow: /closed/\n",
            _HALF,
        ),
        "split-group": (
            (
                b"User-agent: trapline\nDisallow: /closed/\n\nUser-agent: x\nDisallow: /\n\n"
                b"User-agent: Trapline\nDisallow: /x.bak\n"
            ),
            Rules((Group(("trapline",), (("disallow", "/closed/"), ("disallow", "/x.bak"))),)),
        ),
        "not-utf-8": (b"# caf\xe9\n" + rule.encode(), _HALF),
        "encoded": (
            b"User-agent: *\nDisallow: /a%20b\nDisallow: /closed/\n",
            Rules((Group(("*",), (("disallow", "/a%20b"), ("disallow", "/closed/"))),)),
        ),
        "rule-within-limit": (rule.encode() + filler.encode() * 9000, _HALF),
        "rule-beyond-limit": (filler.encode() * (2 * _LIMIT // len(filler)) + rule.encode(), OPEN),
        "html": (markup("Welcome", "This is not a robots.txt.").encode(), OPEN),
        "garbage": (bytes(range(256)) * 8, OPEN),
    }
    return {
        name: (Page(target=TARGET, body=body, content_type=PLAIN, validators=frozenset()), meant)
        for name, (body, meant) in texts.items()
    }


def _by_answer() -> dict[str, tuple[Page, Rules]]:
    """Answers other than 200: 4xx opens the site, 5xx and silence close it, five hops are followed."""
    return {
        "missing": (Page(target=TARGET, status=404), OPEN),
        "unauthorised": (Page(target=TARGET, status=401), OPEN),
        "denied": (Page(target=TARGET, status=403), OPEN),
        "gone": (Page(target=TARGET, status=410), OPEN),
        "limited": (Page(target=TARGET, status=429), OPEN),
        "error": (Page(target=TARGET, status=500), CLOSED),
        "unavailable": (Page(target=TARGET, status=503), CLOSED),
        "recovers": (Page(target=TARGET, respond=_recovers), _HALF),
        "redirect": (Page(target=TARGET, respond=_hops(5), redirect=Redirect("?hop=1")), _HALF),
        "redirect-far": (Page(target=TARGET, respond=_hops(50)), OPEN),
        "redirect-loop": (Page(target=TARGET, respond=_to(TARGET)), OPEN),
        "slow": (Page(target=TARGET, perform=_slow), _HALF),
        "reset": (Page(target=TARGET, perform=_reset), CLOSED),
        "endless": (Page(target=TARGET, perform=_endless), _HALF),
    }


def _rule() -> Response:
    return Response(body=_HALF.text("").encode(), content_type=PLAIN)


def _hops(number: int) -> Respond:
    def respond(request: Request, _state: State) -> Response:
        hop = int(request.number("hop", 0))
        if hop >= number:
            return _rule()
        return Response(302, headers=(("Location", f"{TARGET}?hop={hop + 1}"),))

    return respond


def _to(target: str) -> Respond:
    headers: Headers = (("Location", target),)
    return lambda _request, _state: Response(302, headers=headers)


def _recovers(request: Request, state: State) -> Response:
    """Fail once, then answer: the crawl waits, and then goes on."""
    return Response(500) if state.visit(request.origin) == 1 else _rule()


async def _slow(request: Request, wire: Wire, _state: State) -> None:
    await asyncio.sleep(request.number("seconds", 1.0))
    await wire.send(_rule())


async def _reset(_request: Request, wire: Wire, _state: State) -> None:
    wire.reset()


async def _endless(_request: Request, wire: Wire, _state: State) -> None:
    """Say the rules, then comments for ever: a reader must stop by himself."""
    await wire.head(headers=(("Content-Type", PLAIN), ("Connection", "close")))
    await wire.write(_HALF.text("").encode())
    while True:
        await wire.write(b"# and so on\n" * 5000)
