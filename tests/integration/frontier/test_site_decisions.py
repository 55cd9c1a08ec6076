"""The frontier's decisions, held to what the test site means by its rules, maps and traps."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from urllib.parse import urljoin

import aiohttp
import pytest
import turbohtml

from tests.site.robots import DOMAIN
from tests.site.site import Site
from tests.site.sitemaps import LISTED
from tests.site.traps import BASE as TRAPS
from trapline.errors import ExitCode, VisitFailed
from trapline.frontier import canonical
from trapline.frontier.canonical_url import split_url
from trapline.frontier.link_filter import LinkFilter
from trapline.frontier.robots import (
    MAX_ROBOTS_BYTES,
    Access,
    RobotsPolicy,
    parse_robots,
    policy_for,
)
from trapline.frontier.robots.rules import Rule
from trapline.frontier.scope import Scope, ScopeRules
from trapline.frontier.sitemaps import MAX_INDEX_DEPTH, EntryKind, SitemapReader
from trapline.frontier.spider_traps import Trap, TrapKind

AGENT = "Trapline/1.0"
TARGETS = ("/", "/open/", "/closed/", "/closed/but-open/", "/a%20b", "/x.bak")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield session


class Answers:
    """Asks the site under any of its names, and follows no redirect."""

    def __init__(self, site: Site, client: aiohttp.ClientSession) -> None:
        self._site, self._client = site, client

    async def get(self, target: str, host: str) -> tuple[int | None, bytes, str | None]:
        headers = {"Host": f"{host}:{self._site.port}"}
        url = self._site.at(target)
        try:
            async with self._client.get(url, headers=headers, allow_redirects=False) as answer:
                body = await self._beginning(answer)
                return answer.status, body, answer.headers.get("Location")
        except aiohttp.ClientError:
            return None, b"", None

    @staticmethod
    async def _beginning(answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_chunked(65_536):
            body += chunk
            if len(body) > 20 * MAX_ROBOTS_BYTES:
                break
        return bytes(body)


async def access(answers: Answers, host: str) -> tuple[RobotsPolicy, Access]:
    target, redirects = "/robots.txt", 0
    status, body, location = await answers.get(target, host)
    while location and redirects <= 5:
        redirects += 1
        target = urljoin(target, location)
        status, body, location = await answers.get(target, host)
    policy = policy_for(status, redirects=redirects)
    if policy is RobotsPolicy.READ:
        return policy, parse_robots(body).access(AGENT)
    closed = policy is RobotsPolicy.DISALLOW_ALL
    return policy, Access([Rule(allow=False, pattern="/")] if closed else [])


async def test_every_robots_txt_is_read_as_it_is_meant(
    site: Site, client: aiohttp.ClientSession
) -> None:
    answers = Answers(site, client)
    hosts = [host for host in site.hosts() if host.endswith(DOMAIN)]
    assert len(hosts) > 25
    for host in hosts:
        policy, rules = await access(answers, host)
        if host.startswith("recovers."):
            assert policy is RobotsPolicy.DISALLOW_ALL
            policy, rules = await access(answers, host)
        read = {target: rules.allows(target) for target in TARGETS}
        assert read == {target: site.allows("trapline", target, host) for target in TARGETS}, host


async def pages_of(answers: Answers, target: str, depth: int = 0) -> list[str]:
    """What a sitemap of maps.test lists of its own host, through its indexes."""
    _, body, _ = await answers.get(target, "maps.test")
    reader, entries = SitemapReader(), []
    for at in range(0, len(body), 65_536):
        entries += reader.feed(body[at : at + 65_536])
    found: list[str] = []
    for entry in [*entries, *reader.close()]:
        try:
            _, host, path = split_url(canonical(entry.url))
        except VisitFailed:
            continue
        if not host.startswith("maps.test"):
            continue
        if entry.kind is EntryKind.PAGE:
            found.append(path)
        elif depth < MAX_INDEX_DEPTH and path != target:
            found += await pages_of(answers, path, depth + 1)
    return found


@pytest.mark.parametrize("target", LISTED)
async def test_every_sitemap_lists_what_a_tolerant_reader_finds(
    site: Site, client: aiohttp.ClientSession, target: str
) -> None:
    assert await pages_of(Answers(site, client), target) == list(LISTED[target])


@pytest.mark.parametrize("target", ["/missing.xml", "/page.xml", "/empty.xml", "/laughs.xml"])
async def test_what_is_no_sitemap_lists_nothing(
    site: Site, client: aiohttp.ClientSession, target: str
) -> None:
    assert await pages_of(Answers(site, client), target) == []


async def test_a_bomb_is_cut(site: Site, client: aiohttp.ClientSession) -> None:
    _, body, _ = await Answers(site, client).get("/bomb.xml.gz", "maps.test")
    reader = SitemapReader()
    assert reader.feed(body) == []
    assert reader.done
    assert "larger than the limit" in reader.problems[0]


async def test_the_sitemaps_of_the_main_host_name_its_pages(
    site: Site, client: aiohttp.ClientSession
) -> None:
    _, body, _ = await Answers(site, client).get("/sitemaps/journal.xml", "trapline.test")
    reader = SitemapReader()
    entries = [*reader.feed(body), *reader.close()]
    listed = {page.target: page.modified.date() for page in site.pages() if page.listed}
    assert entries
    for entry in entries:
        assert entry.modified is not None
        assert listed[split_url(entry.url).path] == entry.modified.date()
        assert entry.changes == "monthly"


async def test_a_walk_through_the_traps_ends(
    site: Site, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(site, client)
    start = canonical(site.at(TRAPS))
    link_filter = LinkFilter(Scope(ScopeRules(start)), {})
    look, kinds = link_filter.traps.detect, set[TrapKind]()

    def noting(url: str, now: datetime) -> Trap | None:
        trap = look(url, now)
        kinds.update([] if trap is None else [trap.kind])
        return trap

    monkeypatch.setattr(link_filter.traps, "detect", noting)
    walk, visited, refused = deque([(start, 0)]), Counter[str](), Counter[ExitCode]()
    while walk:
        url, depth = walk.popleft()
        visited[split_url(url).path.removeprefix(TRAPS).split("/")[0].partition("?")[0]] += 1
        _, body, _ = await answers.get(split_url(url).path, "trapline.test")
        for anchor in turbohtml.parse(body).find_all("a"):
            decision = link_filter.decide(str(anchor.attrs["href"]), url, depth + 1, NOW)
            if decision and decision.refusal:
                refused[decision.refusal] += 1
            elif decision:
                walk.append((decision.url, depth + 1))
    assert visited["session"] == 5
    assert all(count < 600 for count in visited.values()), visited
    assert refused[ExitCode.TRAP] > 0
    assert kinds == set(TrapKind) - {TrapKind.GROWING_PATH}
