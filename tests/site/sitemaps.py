"""Sitemaps and feeds: those of the main host, and a host full of difficult ones."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from email.utils import format_datetime
from itertools import pairwise
from xml.sax.saxutils import escape

from tests.site.host import Family, Host
from tests.site.message import Request, Response
from tests.site.page import EPOCH, Page, Respond
from tests.site.rules import Group, Rules
from tests.site.sheet import sheet
from tests.site.state import State

_SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_XML = "application/xml"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SECTIONS = ("journal", "shop", "manual")
HUGE = 60_000
"""URLs in the sitemap that is longer than the protocol allows."""
_BOMB_BYTES = 500_000_000


def main_host(host: Host) -> Iterator[Page]:
    """Yield an index, its sitemaps and the feeds, all written from the host's page table."""

    def targets(section: str) -> list[Page]:
        listed = [page for page in host.pages.values() if page.listed]
        if section:
            return [page for page in listed if page.target.startswith(f"/{section}/")]
        known = tuple(f"/{name}/" for name in _SECTIONS)
        return [page for page in listed if not page.target.startswith(known)]

    parts = ("/sitemaps/journal.xml", "/sitemaps/shop.xml.gz", "/sitemaps/rest.xml")
    yield _page("/sitemap.xml", _XML, lambda origin: index([origin + part for part in parts]))
    yield _page(parts[0], _XML, lambda origin: urls(origin, targets("journal")))
    yield _page(
        parts[1],
        "application/gzip",
        lambda origin: gzip.compress(urls(origin, targets("shop")), mtime=0),
    )
    yield _page(parts[2], _XML, lambda origin: urls(origin, targets("")))
    yield _page(
        "/sitemaps/manual.txt",
        "text/plain",
        lambda origin: "".join(f"{origin}{p.target}\n" for p in targets("manual")).encode(),
    )
    yield _page("/feeds/journal.rss", "application/rss+xml", lambda o: rss(o, targets("journal")))
    yield _page(
        "/feeds/journal.atom", "application/atom+xml", lambda o: atom(o, targets("journal"))
    )


def difficult_host() -> Host:
    """Return maps.test: its robots.txt names every sitemap of `LISTED`, and some that list nothing."""
    sitemaps = tuple(LISTED) + _WORTHLESS
    host = Host("maps.test", rules=Rules((Group(("*",), (("disallow", ""),)),), sitemaps))
    host.add([sheet("/", "Maps", "The pages are in the sitemaps.")])
    host.add(_difficult())
    host.families.append(Family("/p/", _numbered))
    return host


LISTED: dict[str, Sequence[str]] = {
    "/nested.xml": ["/p/1", "/p/2"],
    "/loop.xml": ["/p/3"],
    "/cut.xml": ["/p/4"],
    "/entities.xml": ["/p/5?a=1&b=2"],
    "/latin.xml": ["/p/6?name=%C3%A9"],
    "/packed.xml.gz": ["/p/7"],
    "/packed-unsaid.xml": ["/p/8"],
    "/cut.xml.gz": [],
    "/marked.txt": ["/p/9", "/p/10"],
    "/feed.rss": ["/p/11"],
    "/feed.atom": ["/p/12"],
    "/foreign.xml": ["/p/13"],
    "/dates.xml": ["/p/14", "/p/15", "/p/16", "/p/17"],
    "/no-namespace.xml": ["/p/18"],
    "/spaces.xml": ["/p/19"],
    "/huge.xml": [f"/p/{number}" for number in range(1000, 1000 + HUGE)],
}
"""What a tolerant reader finds in each sitemap of maps.test; more is wrong, less is impatient."""

_WORTHLESS = ("/missing.xml", "/page.xml", "/empty.xml", "/laughs.xml", "/bomb.xml.gz")


def urls(origin: str, pages: Sequence[Page]) -> bytes:
    """Return a sitemap of these pages."""
    entries = (
        f"<url><loc>{escape(origin + page.target)}</loc>"
        f"<lastmod>{page.modified.date().isoformat()}</lastmod>"
        f"<changefreq>monthly</changefreq><priority>{0.8 if page.kind == 'article' else 0.5}</priority></url>"
        for page in pages
    )
    return url_set("\n".join(entries)).encode()


def url_set(entries: str) -> str:
    return f'{_HEAD}<urlset xmlns="{_SPACE}">\n{entries}\n</urlset>\n'


def index(locations: Sequence[str]) -> bytes:
    entries = "\n".join(f"<sitemap><loc>{escape(place)}</loc></sitemap>" for place in locations)
    return f'{_HEAD}<sitemapindex xmlns="{_SPACE}">\n{entries}\n</sitemapindex>\n'.encode()


def rss(origin: str, pages: Sequence[Page]) -> bytes:
    items = "".join(
        f"<item><title>{escape(page.title)}</title><link>{escape(origin + page.target)}</link>"
        f"<pubDate>{format_datetime(page.modified, usegmt=True)}</pubDate></item>"
        for page in pages
        if page.kind == "article"
    )
    return (
        f'{_HEAD}<rss version="2.0"><channel><title>Journal</title><link>{origin}/journal/</link>'
        f"<description>Notes</description>{items}</channel></rss>\n"
    ).encode()


def atom(origin: str, pages: Sequence[Page]) -> bytes:
    entries = "".join(
        f'<entry><title>{escape(page.title)}</title><link href="{escape(origin + page.target)}"/>'
        f"<id>{escape(origin + page.target)}</id><updated>{page.modified.isoformat()}</updated></entry>"
        for page in pages
        if page.kind == "article"
    )
    return (
        f'{_HEAD}<feed xmlns="http://www.w3.org/2005/Atom"><title>Journal</title><id>{origin}/</id>'
        f"<updated>{EPOCH.isoformat()}</updated>{entries}</feed>\n"
    ).encode()


def _page(target: str, content_type: str, write: Callable[[str], bytes]) -> Page:
    """Return a page whose text depends on the name under which it was asked for."""
    return Page(target=target, content_type=content_type, respond=_responder(content_type, write))


def _responder(content_type: str, write: Callable[[str], bytes]) -> Respond:
    def respond(request: Request, _state: State) -> Response:
        return Response(body=write(request.origin), content_type=content_type)

    return respond


def _numbered(target: str) -> Page | None:
    return sheet(target, f"Place {target}") if target[3:4].isdigit() else None


def _plain(origin: str, *targets: str) -> bytes:
    return url_set(
        "\n".join(f"<url><loc>{escape(origin + t)}</loc></url>" for t in targets)
    ).encode()


def _difficult() -> Iterator[Page]:
    yield from _indexes()
    yield from _texts()
    yield from _packed()
    yield _page("/feed.rss", "application/rss+xml", lambda o: rss(o, [_article("/p/11")]))
    yield _page("/feed.atom", "application/atom+xml", lambda o: atom(o, [_article("/p/12")]))
    yield _page("/huge.xml", _XML, lambda o: _plain(o, *LISTED["/huge.xml"]))
    yield _page("/empty.xml", _XML, lambda _: b"")
    yield Page(target="/page.xml", body=b"<!doctype html><p>No sitemap here.", content_type=_XML)


def _indexes() -> Iterator[Page]:
    inner = ["/nested/1.xml", "/nested/2.xml"]
    yield _page("/nested.xml", _XML, lambda o: index([f"{o}/nested/index.xml"]))
    yield _page("/nested/index.xml", _XML, lambda o: index([o + place for place in inner]))
    yield _page("/nested/1.xml", _XML, lambda o: _plain(o, "/p/1"))
    yield _page("/nested/2.xml", _XML, lambda o: _plain(o, "/p/2"))
    yield _page("/loop.xml", _XML, lambda o: index([f"{o}/loop.xml", f"{o}/loop/leaf.xml"]))
    yield _page("/loop/leaf.xml", _XML, lambda o: _plain(o, "/p/3"))


def _texts() -> Iterator[Page]:
    """XML that is cut off, badly escaped, oddly encoded, dated by fantasy, or a joke on the parser."""
    yield _page("/cut.xml", _XML, lambda o: _plain(o, "/p/4", "/p/404").partition(b"/p/404")[0])
    yield _page(
        "/entities.xml",
        _XML,
        lambda o: url_set(f"<url><loc>{o}/p/5?a=1&b=2</loc></url>").encode(),
    )
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?><urlset><url><loc>{}/p/6?name=é</loc></url></urlset>'
    yield _page("/latin.xml", _XML, lambda o: latin.format(o).encode("latin-1"))
    yield _page(
        "/marked.txt", "text/plain", lambda o: f"\ufeff{o}/p/9\r\n\r\n{o}/p/10\r\n".encode()
    )
    yield _page("/foreign.xml", _XML, _foreign)
    yield _page("/dates.xml", _XML, _dates)
    bare = "<urlset><url><loc>{}/p/18</loc></url></urlset>"
    yield _page("/no-namespace.xml", _XML, lambda o: bare.format(o).encode())
    spaced = "\n\n<urlset><url><loc>\n   {}/p/19 \n</loc></url></urlset>"
    yield _page("/spaces.xml", _XML, lambda o: spaced.format(o).encode())
    yield _page("/laughs.xml", _XML, lambda _: _laughs())


def _packed() -> Iterator[Page]:
    zipped = "application/gzip"
    yield _page("/packed.xml.gz", zipped, lambda o: gzip.compress(_plain(o, "/p/7")))
    yield _page("/packed-unsaid.xml", _XML, lambda o: gzip.compress(_plain(o, "/p/8")))
    yield _page("/cut.xml.gz", zipped, lambda o: gzip.compress(_plain(o, "/p/404"))[:40])
    yield _page("/bomb.xml.gz", zipped, lambda _: _bomb())


def _foreign(origin: str) -> bytes:
    """Only the URL of this host counts; the others are not this host's to list."""
    places = [
        f"{origin}/p/13",
        "http://other.test/p/404",
        "/p/404",
        "ftp://maps.test/p/404",
        "javascript:void(0)",
    ]
    return url_set("\n".join(f"<url><loc>{place}</loc></url>" for place in places)).encode()


def _dates(origin: str) -> bytes:
    dates = ("2024-05-17T08:30:00+02:00", "2024", "yesterday", "9999-99-99")
    return url_set(
        "\n".join(
            f"<url><loc>{origin}/p/{number}</loc><lastmod>{date}</lastmod><priority>{priority}</priority></url>"
            for number, date, priority in zip(
                range(14, 18), dates, ("1.0", "0.1", "7", "high"), strict=True
            )
        )
    ).encode()


def _laughs() -> bytes:
    """Entities that double and double: nothing, if they are not expanded."""
    names = "abcdefghij"
    entities = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names)
    )
    return (
        f'<?xml version="1.0"?><!DOCTYPE urlset [{entities}<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        "<urlset><url><loc>&j;&x;</loc></url></urlset>"
    ).encode()


def _bomb() -> bytes:
    """A sitemap that is half a gigabyte of spaces before its first URL."""
    block = gzip.compress(b" " * 1_000_000, mtime=0)
    return gzip.compress(b"<urlset>", mtime=0) + block * (_BOMB_BYTES // 1_000_000)


def _article(target: str) -> Page:
    return sheet(target, f"Place {target}", kind="article")
