"""What caches in front of a site say: MISS, then HIT, with an age, until it expires."""

from collections.abc import Iterator
from time import time

from tests.site.answers import static
from tests.site.compose import compose
from tests.site.message import Headers, Request, Response
from tests.site.page import Page, Respond
from tests.site.prose import markdown
from tests.site.sections.listing import Entry, listing
from tests.site.state import State

MAX_AGE = 3600.0
_HUTS = {
    "lower-hut": ("Lower hut", "cloudflare", "Open. Stove works. Wood for two nights."),
    "upper-hut": ("Upper hut", "cloudflare", "Open. The door sticks; lift and push."),
    "shore-hut": ("Shore hut", "fastly", "Closed until the roof is back on."),
    "moss-hut": ("Moss hut", "cloudfront", "Open, damp. Bring socks."),
    "ridge-hut": ("Ridge hut", "akamai", "Open in daylight only."),
    "mill-hut": ("Mill hut", "never", "Status is read from the stove, so it is never stored."),
}


def demo() -> Iterator[Page]:
    """Yield the hut status boards, each behind another pretended cache."""
    entries = [Entry(f"/status/{slug}/", name, text) for slug, (name, _, text) in _HUTS.items()]
    yield listing("/status/", "Hut status", entries, summary="Read twice a day, by radio.")
    for slug, (name, cache, text) in _HUTS.items():
        page = compose(
            "plain",
            f"/status/{slug}/",
            kind="service",
            title=name,
            text=markdown(text),
            groups=(),
            validators=frozenset({"etag"}),
        )
        page.respond = _cached(page, cache)
        yield page


def _cached(page: Page, cache: str) -> Respond:
    def respond(request: Request, state: State) -> Response:
        answer = static(page, request)
        if cache == "never":
            said: Headers = (("Cache-Control", "no-store"), ("CF-Cache-Status", "DYNAMIC"))
        else:
            said = _SAYINGS[cache](*_look(request, state))
            said += (("Cache-Control", f"public, max-age={MAX_AGE:.0f}"),)
        return Response(answer.status, answer.body, answer.headers + said, answer.content_type)

    return respond


def _look(request: Request, state: State) -> tuple[bool, int]:
    """Tell whether the cache has the URL, and for how many seconds; store it if it has not."""
    key, now = request.origin + request.target, time()
    stored = state.cached.get(key)
    if stored is None or now - stored > MAX_AGE:
        state.cached[key] = now
        return False, 0
    return True, int(now - stored)


def _cloudflare(hit: bool, age: int) -> Headers:
    said: Headers = (("CF-Cache-Status", "HIT" if hit else "MISS"), ("CF-RAY", "7c0ffee0beef-LHR"))
    return (*said, ("Age", str(age))) if hit else said


def _fastly(hit: bool, age: int) -> Headers:
    return (
        ("X-Served-By", "cache-lhr1"),
        ("X-Cache", "HIT" if hit else "MISS"),
        ("X-Cache-Hits", "1" if hit else "0"),
        ("Age", str(age)),
    )


def _cloudfront(hit: bool, age: int) -> Headers:
    word = "Hit from cloudfront" if hit else "Miss from cloudfront"
    return (("X-Cache", word), ("Age", str(age)))


def _akamai(hit: bool, _age: int) -> Headers:
    return (("X-Cache", "TCP_HIT from a1" if hit else "TCP_MISS from a1"),)


_SAYINGS = {
    "cloudflare": _cloudflare,
    "fastly": _fastly,
    "cloudfront": _cloudfront,
    "akamai": _akamai,
}
