"""The test site's well-behaved part: what a real client sees, and whether the truth is true."""

import asyncio
import gzip
import socket
import sys
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit
from xml.etree import ElementTree as ET

import aiohttp
import pytest
from aiohttp import ClientSession
from protego import Protego

from tests.site.charsets import TRUE_TEXT
from tests.site.page import Hop
from tests.site.rules import Group, Rules
from tests.site.site import Site
from tests.site.truth import Endless

DEMO_PAGES = range(150, 251)


class Hrefs(HTMLParser):
    """Collects links as a browser without JavaScript has them; knows nothing of the page table."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.nofollow: set[str] = set()
        self._templates = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._templates += tag == "template"
        href = dict(attrs).get("href")
        if tag == "a" and href is not None and not self._templates:
            self.found.append(href)
            if "nofollow" in (dict(attrs).get("rel") or ""):
                self.nofollow.add(href)

    def handle_endtag(self, tag: str) -> None:
        self._templates -= tag == "template"


def hrefs(html: str) -> list[str]:
    parser = Hrefs()
    parser.feed(html)
    return parser.found


async def get(url: str, **headers: str) -> tuple[aiohttp.ClientResponse, bytes]:
    """Fetch one URL as it is: no redirect is followed."""
    async with (
        ClientSession() as client,
        client.get(url, headers=headers, allow_redirects=False) as answer,
    ):
        return answer, await answer.read()


async def test_logs_what_was_asked_and_answered(site: Site) -> None:
    url = site.at("/journal/the-case-for-brass/")
    answer, body = await get(url, **{"X-Mark": "1"})
    assert answer.status == 200
    assert b"The case for brass" in body
    (entry,) = site.log
    assert (entry.method, entry.url, entry.status) == ("GET", url, 200)
    assert entry.headers["x-mark"] == "1"
    assert entry.finished is not None


async def test_keeps_connections_alive(site: Site) -> None:
    async with ClientSession() as client:
        for target in ("/", "/journal/", "/manual/"):
            async with client.get(site.at(target)) as answer:
                await answer.read()
    assert len({entry.connection for entry in site.log}) == 1


async def test_head_has_the_headers_of_get_and_no_body(site: Site) -> None:
    async with ClientSession() as client, client.head(site.at("/manual/")) as answer:
        assert await answer.read() == b""
        assert int(answer.headers["Content-Length"]) > 1000


async def test_other_methods_are_refused(site: Site) -> None:
    async with ClientSession() as client, client.post(site.url, data=b"x") as answer:
        assert answer.status == 405


def test_table_knows_the_links_that_the_pages_have(site: Site) -> None:
    """The truth rests on the table's links; here they are compared with the bytes that are sent."""
    for page in site.pages():
        if page.target.startswith(("/hostile/", "/world/")) or not page.links:
            continue
        parser = Hrefs()
        parser.feed(page.body.decode())
        declared = Counter(link.href for link in page.links if not link.scripted)
        assert Counter(parser.found) == declared, page.target
        assert parser.nofollow == {link.href for link in page.links if link.nofollow}, page.target


async def crawl(site: Site) -> tuple[set[str], set[str]]:
    """Walk the site as a polite crawler would; return what was fetched and what robots forbade."""
    _, rules = await get(site.at("/robots.txt"))
    robots = Protego.parse(rules.decode())
    waiting, seen, forbidden = [site.url], {site.url}, set()
    async with ClientSession() as client:
        while waiting:
            url = waiting.pop()
            async with client.get(url, allow_redirects=False) as answer:
                body = await answer.read()
            for found in followable(site, url, answer, body) - seen - forbidden:
                if robots.can_fetch(found, "trapline"):
                    seen.add(found)
                    waiting.append(found)
                else:
                    forbidden.add(found)
    return seen, forbidden


def followable(site: Site, url: str, answer: aiohttp.ClientResponse, body: bytes) -> set[str]:
    if "Location" in answer.headers:
        targets = [answer.headers["Location"]]
    elif answer.content_type != "text/html" or answer.status != 200:
        targets = []
    else:
        page = site.page(url)
        kept = {link.href for link in page.links if not (link.nofollow or link.hidden)}
        targets = [] if page.nofollow else [h for h in hrefs(body.decode("latin-1")) if h in kept]
        if page.redirect is not None and page.redirect.how is Hop.META_REFRESH:
            targets.append(page.redirect.to)
    absolute = {urldefrag(urljoin(url, target)).url for target in targets}
    return {found for found in absolute if found.startswith(site.url)}


async def test_truth_is_what_a_polite_crawler_finds(site: Site) -> None:
    fetched, forbidden = await crawl(site)
    truth = site.reachable()
    assert fetched == truth.fetched
    assert forbidden == truth.forbidden
    assert site.log.pages() == Counter(dict.fromkeys(truth.fetched, 1))
    by_status = {entry.url for entry in site.log if entry.status >= 400}
    assert by_status == set(truth.broken)


def test_demo_is_of_a_size_to_watch_and_has_something_of_everything(site: Site) -> None:
    truth = site.reachable()
    assert len(truth.fetched) in DEMO_PAGES
    kinds = Counter(site.page(url).kind for url in truth.content)
    wanted = ("article", "documentation", "forum", "product", "collection", "listing", "service")
    assert all(kinds[kind] >= 4 for kind in wanted), kinds
    assert kinds["document"] == 2
    assert {site.page(url).status for url in truth.broken} == {404, 410}
    assert truth.broken[site.at("/journal/the-lost-issue/")] == {site.url}
    assert len(truth.redirects) == 4
    assert site.at("/private/") in truth.forbidden
    assert site.at("/private/press-kit/") in truth.content
    assert not any("/hostile/" in url for url in truth.fetched | truth.forbidden)


def test_truth_follows_the_options_of_a_crawl(site: Site) -> None:
    plain = site.reachable()
    hidden = site.reachable(hidden=True).fetched - plain.fetched
    assert len(hidden) == 6
    assert all("/notes/hidden/" in url for url in hidden)
    nofollow = site.reachable(nofollow=True).fetched - plain.fetched
    assert site.at("/notes/behind-the-dead-end/") in nofollow
    scripted = site.reachable(javascript=True).fetched - plain.fetched
    assert scripted == {site.at(f"/planner/route/{n}/") for n in (1, 2, 3)}
    listed = site.reachable(sitemaps=True).fetched - plain.fetched
    assert listed == {site.at(f"/attic/{name}/") for name in ("first", "second", "third")}
    assert site.at("/private/ledger/") in site.reachable(robots=False).fetched
    assert site.reachable(agent="greedybot").fetched == set()
    assert site.reachable(depth=0).fetched == {site.url}
    section = site.reachable(site.at("/journal/"), prefix="/journal/").fetched
    assert all(urlsplit(url).path.startswith("/journal/") for url in section)
    assert plain.external == {"http://other.test/"}
    both = site.reachable(site.at("/", "docs.trapline.test"), hosts=frozenset({"trapline.test"}))
    assert {urlsplit(url).hostname for url in both.fetched} == {
        "trapline.test",
        "docs.trapline.test",
    }


def test_truth_refuses_to_walk_into_a_trap_without_a_depth(site: Site) -> None:
    door = site.at("/hostile/trap/", host="hostile.test")
    with pytest.raises(Endless):
        site.reachable(door)
    assert len(site.reachable(door, depth=2).fetched) > 20


def test_truth_knows_duplicates(site: Site) -> None:
    duplicates = site.reachable().duplicates
    first, second = (site.at(f"/copies/{s}/how-to-read-a-hedgerow/") for s in "ab")
    assert duplicates[first] == {second}
    near = site.page("/retold/soup-for-eleven-on-one-flame/").main_text
    original = site.page("/journal/soup-for-eleven-on-one-flame/").main_text
    assert near != original
    shared = set(near.split()) & set(original.split())
    assert len(shared) > 0.9 * len(set(original.split()))
    assert site.page("/thin/1/").main_text == "Thin page 1"


def test_main_text_is_the_content_and_not_its_frame(site: Site) -> None:
    for url in site.reachable().content:
        text = site.page(url).main_text
        assert "cookie" not in text or "/privacy/" in url
        assert "Lower Hollin. Company number" not in text
    product = site.page("/shop/p/loupe-ten").main_text
    assert "46.00 €" in product
    assert "Others also bought" not in product


async def test_robots_txt_says_what_the_rules_say(site: Site) -> None:
    _, body = await get(site.at("/robots.txt"))
    robots = Protego.parse(body.decode())
    for agent in ("trapline", "SlowBot", "GreedyBot"):
        for target in (
            "/",
            "/private/",
            "/private/press-kit/",
            "/shop/?sort=name",
            "/x.bak",
            "/x.bak2",
        ):
            expected = site.allows(agent, target)
            assert robots.can_fetch(site.at(target), agent) == expected, (agent, target)
    assert robots.crawl_delay("SlowBot") == 2
    assert list(robots.sitemaps) == [site.at("/sitemap.xml"), site.at("/sitemaps/manual.txt")]


async def test_robots_of_many_hosts_differ(site: Site) -> None:
    expected = {"missing": 404, "error": 500, "redirect": 302, "html": 200, "closed": 200}
    for name, status in expected.items():
        answer, _ = await get(site.at("/robots.txt"), Host=f"{name}.robots.test")
        assert answer.status == status, name
    _, marked = await get(site.at("/robots.txt"), Host="mark.robots.test")
    assert marked.startswith(b"\xef\xbb\xbf")
    _, far = await get(site.at("/robots.txt"), Host="rule-beyond-limit.robots.test")
    assert far.index(b"Disallow") > 500 * 1024


async def test_sitemaps_list_the_listed_pages(site: Site) -> None:
    _, index = await get(site.at("/sitemap.xml"))
    found: set[str] = set()
    for location in locations(index):
        _, body = await get(location)
        found |= set(locations(gzip.decompress(body) if location.endswith(".gz") else body))
    _, text = await get(site.at("/sitemaps/manual.txt"))
    found |= set(text.decode().split())
    assert found == {site.at(page.target) for page in site.pages() if page.listed}
    _, elsewhere = await get(site.at("/sitemaps/journal.xml"), Host="trapline.test:80")
    assert b"<loc>http://trapline.test:80/journal/" in elsewhere


def locations(xml: bytes) -> list[str]:
    return [str(loc.text) for loc in ET.fromstring(xml).iter() if loc.tag.endswith("}loc")]  # noqa: S314


@pytest.mark.parametrize("feed", ["/feeds/journal.rss", "/feeds/journal.atom"])
async def test_feeds_name_every_article(site: Site, feed: str) -> None:
    _, body = await get(site.at(feed))
    ET.fromstring(body)  # noqa: S314
    assert site.at("/journal/on-carrying-less/").encode() in body


async def test_difficult_sitemaps_are_as_difficult_as_they_say(site: Site) -> None:
    async def text(target: str) -> bytes:
        return (await get(site.at(target), Host="maps.test"))[1]

    assert b"</urlset>" not in await text("/cut.xml")
    with pytest.raises(EOFError):
        gzip.decompress(await text("/cut.xml.gz"))
    assert gzip.decompress(await text("/packed-unsaid.xml")).startswith(b"<?xml")
    assert (await text("/huge.xml")).count(b"<loc>") == 60_000
    assert len(await text("/bomb.xml.gz")) < 1_000_000
    assert len(locations(await text("/dates.xml"))) == 4


async def test_validators_lead_to_304(site: Site) -> None:
    url = site.at("/manual/battery.html")
    first, _ = await get(url)
    by_tag, body = await get(url, **{"If-None-Match": first.headers["ETag"]})
    assert (by_tag.status, body) == (304, b"")
    by_date, _ = await get(url, **{"If-Modified-Since": first.headers["Last-Modified"]})
    assert by_date.status == 304
    changed, _ = await get(url, **{"If-None-Match": '"other"'})
    assert changed.status == 200
    forum, _ = await get(site.at("/forum/"))
    assert "ETag" not in forum.headers
    site.edit("/manual/battery.html", "31 hours", "32 hours")
    edited, _ = await get(url, **{"If-None-Match": first.headers["ETag"]})
    assert edited.status == 200


async def test_text_is_compressed_for_those_who_ask(site: Site) -> None:
    packed, body = await get(site.at("/journal/"))
    assert packed.headers["Content-Encoding"] == "gzip"
    plain, same = await get(site.at("/journal/"), **{"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert body == same


@pytest.mark.parametrize("target", sorted(TRUE_TEXT))
async def test_letters_are_encoded_as_they_say_or_wrongly_on_purpose(
    site: Site, target: str
) -> None:
    answer, body = await get(site.at(target))
    wrong = "mislabelled" in target or "undeclared" in target or "unknown" in target
    declared = answer.charset or declared_in(body)
    readable = declared is not None and reads(body, declared, TRUE_TEXT[target])
    assert readable is not wrong


def declared_in(body: bytes) -> str | None:
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if body.startswith(mark):
            return name
    _, found, rest = body.partition(b"charset=")
    return rest.strip(b'"').replace(b'"', b">").partition(b">")[0].decode() if found else None


def reads(body: bytes, charset: str, text: str) -> bool:
    """Browsers read these labels as their supersets, and a mark above all."""
    superset = {"iso-8859-1": "cp1252", "gb2312": "gb18030"}.get(charset.lower(), charset)
    if body.startswith(b"\xef\xbb\xbf"):
        superset = "utf-8"
    try:
        return text in body.decode(superset, "replace")
    except LookupError:
        return False


async def test_caches_miss_and_then_hit(site: Site) -> None:
    words = {"lower-hut": "CF-Cache-Status", "shore-hut": "X-Cache", "ridge-hut": "X-Cache"}
    for hut, name in words.items():
        first, _ = await get(site.at(f"/status/{hut}/"))
        second, _ = await get(site.at(f"/status/{hut}/"))
        assert "MISS" in first.headers[name]
        assert "HIT" in second.headers[name]
    never, _ = await get(site.at("/status/mill-hut/"))
    assert never.headers["CF-Cache-Status"] == "DYNAMIC"
    site.reset()
    again, _ = await get(site.at("/status/lower-hut/"))
    assert again.headers["CF-Cache-Status"] == "MISS"


async def test_wishes_to_robots_are_sent(site: Site) -> None:
    _, meta = await get(site.at("/notes/not-for-search/"))
    assert b'<meta name="robots" content="noindex">' in meta
    header, _ = await get(site.at("/notes/by-header/"))
    assert header.headers["X-Robots-Tag"] == "noindex"
    assert {site.at("/notes/not-for-search/"), site.at("/notes/by-header/")} == (
        site.reachable().noindex
    )


async def test_page_that_needs_javascript_has_no_text_without_it(site: Site) -> None:
    _, body = await get(site.at("/planner/"))
    assert hrefs(body.decode()) == []
    assert b'<div id="root"></div>' in body


async def test_one_server_answers_as_many_hosts(site: Site) -> None:
    _, main = await get(site.at("/manual/"), Host="trapline.test")
    _, www = await get(site.at("/manual/"), Host="www.trapline.test")
    assert main == www
    old, _ = await get(site.at("/manual/"), Host="old.trapline.test")
    assert old.headers["Location"] == site.at("/manual/", host="trapline.test")
    _, other = await get(site.url, Host="other.test")
    assert b"Otherfield" in other
    one_of_many, _ = await get(site.at("/999"), Host="h17.many.test")
    assert one_of_many.status == 200
    assert len(site.reachable(site.at("/", "h17.many.test")).fetched) == 1000
    stranger, _ = await get(site.url, Host="nobody.example")
    assert stranger.status == 404


async def test_names_can_be_pinned_to_it(site: Site) -> None:
    assert f"other.test:{site.port}:127.0.0.1" in site.env()["TRAPLINE_RESOLVE"].split(",")
    assert f"h1.many.test:{site.port}:127.0.0.1" in site.resolve("h1.many.test").split(",")


async def test_serves_as_a_proxy(site: Site) -> None:
    url = "http://other.test/field/1"
    async with ClientSession() as client, client.get(url, proxy=site.url) as answer:
        assert answer.status == 200
    (entry,) = site.log
    assert (entry.proxied, entry.host) == (True, "other.test")


async def test_can_be_slowed(site: Site) -> None:
    site.slow("/journal/*", first_byte=0.2)
    await get(site.at("/journal/"))
    await get(site.at("/manual/"))
    slow, fast = site.log
    assert slow.finished is not None
    assert fast.finished is not None
    assert slow.finished - slow.started >= 0.2
    assert fast.finished - fast.started < slow.finished - slow.started


async def test_can_be_slowed_in_the_middle(site: Site) -> None:
    _, whole = await get(site.at("/status/"))
    site.slow("/status/", per_chunk=0.01)
    _, body = await get(site.at("/status/"))
    assert body == whole


async def test_can_fail_a_number_of_times(site: Site) -> None:
    site.fail("/shop/*", status=503, times=2, headers=(("Retry-After", "7"),))
    seen = [await get(site.at("/shop/")) for _ in range(3)]
    assert [answer.status for answer, _ in seen] == [503, 503, 200]
    assert seen[0][0].headers["Retry-After"] == "7"


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_can_drop_connections(site: Site, how: str) -> None:
    site.drop("/", how=how)
    with pytest.raises(aiohttp.ClientConnectionError):
        await get(site.url)
    site.mend()
    assert (await get(site.url))[0].status == 200


async def test_can_go_down_and_come_back(site: Site) -> None:
    site.down()
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(site.url)
    site.up()
    assert (await get(site.url))[0].status == 200
    site.down()
    site.reset()
    assert (await get(site.url))[0].status == 200


async def test_pages_can_be_changed_added_and_removed(site: Site) -> None:
    site.edit("/about/", "we are eleven", "we are twelve")
    assert b"we are twelve" in (await get(site.at("/about/")))[1]
    site.change("/brand-new/", body=b"<p>new</p>")
    assert (await get(site.at("/brand-new/")))[1] == b"<p>new</p>"
    site.remove("/contact/", status=410)
    assert (await get(site.at("/contact/")))[0].status == 410
    assert site.at("/contact/") in site.reachable().broken
    site.reset()
    assert (await get(site.at("/contact/")))[0].status == 200
    with pytest.raises(ValueError, match="does not say"):
        site.edit("/about/", "we are a hundred", "")


async def test_rules_can_be_changed(site: Site) -> None:
    site.set_rules(Rules((Group(("*",), (("disallow", "/journal/"),), crawl_delay=3),)))
    _, body = await get(site.at("/robots.txt"))
    assert body == b"User-agent: *\nDisallow: /journal/\nCrawl-delay: 3\n"
    truth = site.reachable()
    assert not any("/journal/" in url for url in truth.fetched)
    assert site.at("/private/") in truth.fetched


async def test_log_tells_gaps_and_what_was_in_flight(site: Site) -> None:
    site.slow("/glossary/*", first_byte=0.1)
    targets = ("/glossary/col/", "/glossary/fix/", "/glossary/haw/")
    await asyncio.gather(*(get(site.at(target)) for target in targets))
    assert site.log.most_in_flight("127.0.0.1") == 3
    assert len(site.log.gaps("127.0.0.1")) == 2
    assert site.log.most_in_flight("other.test") == 0
    assert site.log.statuses() == {200: 3}
    with pytest.raises(TimeoutError):
        site.log.wait(lambda log: len(log) > 3, timeout=0.05)


def test_reset_cuts_off_what_is_under_way(site: Site) -> None:
    with socket.create_connection((site.address, site.port), timeout=10) as client:
        client.sendall(b"GET /hostile/time/hang HTTP/1.1\r\nHost: hostile.test\r\n\r\n")
        site.log.wait(lambda log: len(log) == 1)
        site.reset()
        assert client.recv(1) == b""
    assert len(site.log) == 0


async def test_controls_work_from_another_process() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.site", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    control = (await process.stdout.readline()).decode().removeprefix("control ").strip()
    try:
        await drive(url, control)
    finally:
        process.terminate()
    assert await process.wait() == 0


async def drive(url: str, control: str) -> None:
    async with ClientSession() as client:

        async def do(command: str, **arguments: object) -> object:
            async with client.post(control + command, json=arguments) as answer:
                assert answer.status == 200, await answer.text()
                return await answer.json()

        await do("fault", pattern="/", status=500, times=1, headers=[["X-Why", "test"]])
        async with client.get(url) as answer:
            assert (answer.status, answer.headers["X-Why"]) == (500, "test")
        await do("change", target="/new", body="<p>new</p>")
        async with client.get(url + "new") as answer:
            assert await answer.text() == "<p>new</p>"
        entries = await do("log")
        assert isinstance(entries, list)
        assert [entry["target"] for entry in entries] == ["/", "/new"]
        truth = await do("reachable", depth=0)
        assert isinstance(truth, dict)
        assert truth["fetched"] == [url]
        await do("down")
        await do("up")
        await do("reset")
        assert await do("log") == []
        async with client.post(control + "dance") as answer:
            assert answer.status == 404
            assert "reset" in (await answer.json())["commands"]
        async with client.post(control + "edit", json={"target": "/", "steps": 2}) as answer:
            assert answer.status == 400
