"""Areas without end: a calendar, session ids, paths that grow, facets that combine."""

from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import sha256
from urllib.parse import parse_qs, urlencode

from tests.site.host import Family
from tests.site.page import Page
from tests.site.sheet import sheet

BASE = "/hostile/trap/"
_FACETS = ("colour", "size", "maker", "year", "shape")


def pages() -> Iterator[Page]:
    doors = ["calendar/2024/06", "session/", "deeper/", "facets", "repeat/a/b/"]
    yield sheet(BASE, "Traps", "Five doors.", [BASE + door for door in doors])


def families() -> list[Family]:
    return [
        Family(f"{BASE}calendar/", _calendar),
        Family(f"{BASE}session/", _session),
        Family(f"{BASE}deeper/", _deeper),
        Family(f"{BASE}facets", _facets),
        Family(f"{BASE}repeat/", _repeat),
    ]


def _calendar(target: str) -> Page | None:
    """A month with links to its neighbours, for all of the years that a date can have."""
    try:
        year, month = map(int, target.removeprefix(f"{BASE}calendar/").strip("/").split("/"))
        first = date(year, month, 1)
    except ValueError:
        return None
    near = [first - timedelta(days=1), first + timedelta(days=31)]
    links = [f"{BASE}calendar/{day.year}/{day.month:02}" for day in near]
    return _endless(target, f"{first:%B %Y}", "Nothing is planned.", links)


def _session(target: str) -> Page | None:
    """Four rooms; every link carries a session id that was never seen before."""
    path, _, query = target.partition("?")
    room = path.removeprefix(f"{BASE}session/") or "1"
    if room not in {"1", "2", "3", "4"}:
        return None
    links = [
        f"{BASE}session/{n}?PHPSESSID={_digest(f'{query}/{room}/{n}')}" for n in "1234" if n != room
    ]
    return _endless(target, f"Room {room}", f"This is room {room} of four.", links)


def _deeper(target: str) -> Page | None:
    """Each page lies one folder below its parent."""
    depth = target.count("/") - BASE.count("/")
    return _endless(
        target, f"Floor {depth}", "There are stairs.", [f"{target}deeper/", f"{target}x/"]
    )


def _repeat(target: str) -> Page | None:
    """A relative link without its slash, as a careless template writes it: /a/b/a/b/a/b/…"""
    return _endless(target, "Again", "Have we met?", ["a/b/", "b/a/"])


def _facets(target: str) -> Page | None:
    """Filters that can be combined in any order: few products, very many URLs."""
    chosen = parse_qs(target.partition("?")[2])
    links = []
    for facet in _FACETS:
        for value in "123":
            query = {name: values[-1] for name, values in chosen.items()} | {facet: value}
            links.append(f"{BASE}facets?{urlencode(query)}")
    return _endless(target, "Filters", "Nine products match.", links)


def _endless(target: str, title: str, text: str, links: list[str]) -> Page:
    return sheet(target, title, text, links, endless=True)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
