"""What deciding about a link costs: canonical form, robots, scope, traps, sitemaps.

A page has about a hundred links, so each microsecond here is a tenth of a millisecond of a page.
Beside: what Scrapy does (urljoin and w3lib's canonicalize_url; Protego), and bare ada-url.
One process, process time, the best of five rounds.
"""

import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

import ada_url
from protego import Protego
from w3lib.url import canonicalize_url

from benchmarks import report, versions
from trapline.frontier import canonical
from trapline.frontier.link_filter import LinkFilter
from trapline.frontier.robots import parse_robots
from trapline.frontier.scope import Scope, ScopeRules
from trapline.frontier.sitemaps import SitemapReader
from trapline.frontier.spider_traps import TrapDetector

COUNT = 5000
ROUNDS = 5
PAGE = "https://docs.example.org/manual/html/index.html"
RELATIVE = [f"../tutorial/page-{n}.html#part" for n in range(COUNT)]
ABSOLUTE = [f"https://docs.example.org/tutorial/page-{n}.html" for n in range(COUNT)]
MESSY = [f"HTTPS://Docs.Example.org:443/%7euser/caf%c3%a9?q=a%20b&id={n}&utm_source=x#f" for n in range(COUNT)]  # fmt: skip
RULES = [f"Disallow: /private-{n}/" for n in range(40)]
ROBOTS = "\n".join(["User-agent: *", *RULES, "Disallow: /*?sort=", "Disallow: /*.php$"])
SITEMAP = b"<urlset>%s</urlset>" % b"".join(
    b"<url><loc>%s</loc><lastmod>2026-01-02</lastmod></url>\n" % url.encode() for url in ABSOLUTE
)


def main() -> None:
    rows = [*_canonical(), *_robots(), *_filters(), *_sitemaps()]
    figures = {_key(f"{row['what']} {row['of']} vs {row['beside']}"): row["ratio"] for row in rows}
    title = versions("ada-url", "w3lib", "Protego", "google-re2")
    report(f"Decisions a second, one core ({title})", rows, figures)


def _canonical() -> Iterable[dict[str, object]]:
    for kind, links in (("relative", RELATIVE), ("absolute", ABSOLUTE), ("messy", MESSY)):
        ours = _rate(lambda link: canonical(link, PAGE), links)
        scrapy = _rate(lambda link: canonicalize_url(urljoin(PAGE, link)), links)
        bare = _rate(lambda link: ada_url.join_url(PAGE, link), links)
        yield _row("canonical", kind, ours, scrapy, "w3lib")
        yield _row("canonical", kind, ours, bare, "ada-url")


def _robots() -> Iterable[dict[str, object]]:
    ours, protego = parse_robots(ROBOTS.encode()).access("Trapline"), Protego.parse(ROBOTS)
    yield _row(
        "robots",
        "42 rules",
        _rate(ours.allows, ABSOLUTE),
        _rate(lambda url: protego.can_fetch(url, "Trapline"), ABSOLUTE),
        "Protego",
    )


def _filters() -> Iterable[dict[str, object]]:
    scope = Scope(ScopeRules("https://docs.example.org/", include=("^/tutorial/",)))
    watch, now = TrapDetector(), datetime(2026, 1, 1, tzinfo=UTC)
    canonical_rate = _rate(lambda link: canonical(link, PAGE), RELATIVE)
    for what, decide in (
        ("scope", lambda url: scope.decide(url, 2)),
        ("traps", lambda url: watch.detect(url, now)),
    ):
        yield _row(what, "pages", _rate(decide, ABSOLUTE), canonical_rate, "canonical")
    # Nine links of ten stand on every page of a site.
    links = [link for n in range(0, COUNT, 10) for link in (*RELATIVE[:90], *RELATIVE[n : n + 10])]
    yield _row("all together", "links", _link_filter_rate(links), canonical_rate, "canonical")


def _link_filter_rate(links: list[str]) -> float:
    access = parse_robots(ROBOTS.encode()).access("Trapline")
    scope = Scope(ScopeRules("https://docs.example.org/", include=("^/tutorial/",)))
    now, best = datetime(2026, 1, 1, tzinfo=UTC), 0.0
    for _ in range(ROUNDS):
        link_filter = LinkFilter(scope, {"https://docs.example.org": access})
        start = time.process_time()
        for link in links:
            link_filter.decide(link, PAGE, 1, now)
        best = max(best, len(links) / (time.process_time() - start))
    return best


def _sitemaps() -> Iterable[dict[str, object]]:
    def ours(body: bytes) -> None:
        reader = SitemapReader()
        for at in range(0, len(body), 65_536):
            reader.feed(body[at : at + 65_536])
        reader.close()

    ours_rate, other_rate = (COUNT * _rate(read, [SITEMAP]) for read in (ours, ET.fromstring))
    yield _row("sitemap", "entries", ours_rate, other_rate, "ElementTree")


def _row(what: str, of: str, ours: float, other: float, beside: str) -> dict[str, object]:
    return {
        "what": what,
        "of": of,
        "ours/s": round(ours),
        "beside": beside,
        "its/s": round(other),
        "ratio": round(ours / other, 2),
    }


def _key(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", words.lower())


def _rate(call: Callable[[Any], object], inputs: Sequence[object]) -> float:
    best = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        for value in inputs:
            call(value)
        best = max(best, len(inputs) / (time.process_time() - start))
    return best


if __name__ == "__main__":
    main()
