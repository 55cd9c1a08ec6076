"""What a sitemap names becomes tasks; what robots.txt forbids of it is told, as of a link."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from trapline.frontier.link_filter import LinkFilter
from trapline.frontier.patterns import Patterns
from trapline.frontier.robots import parse_robots
from trapline.frontier.scope import Scope
from trapline.frontier.sitemaps import EntryKind, SitemapEntry
from trapline.model import JobId, OrganisationId
from trapline.pipeline.crawl import job_log_messages, link_tasks
from trapline.pipeline.crawl.job_context import JobContext, LinkFollowing
from trapline.pipeline.crawl.robots_cache import CachedAccess
from trapline.pipeline.kinds import SitemapTask
from trapline.pipeline.options import CrawlOptions

ORIGIN = "https://site.test"
SITEMAP = SitemapTask(url=f"{ORIGIN}/sitemap.xml")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _crawl(robots: bytes) -> JobContext:
    options = CrawlOptions.parse(url=ORIGIN)
    scope = Scope(options.scope_rules())
    access = {ORIGIN: parse_robots(robots).access("Trapline")}
    following = LinkFollowing(options, scope, LinkFilter(scope, access))
    ids = JobId(UUID(int=1)), OrganisationId(UUID(int=2))
    known = cast("CachedAccess", access)
    extraction = options.stored_extraction
    return JobContext(*ids, options, "Trapline", known, Patterns(()), extraction, b"", following)


def _entries(*paths: str) -> Sequence[SitemapEntry]:
    return [SitemapEntry(EntryKind.PAGE, f"{ORIGIN}{path}") for path in paths]


async def test_pages_that_only_a_sitemap_names_are_told_when_they_are_forbidden() -> None:
    crawl = _crawl(b"User-agent: *\nDisallow: /private/\n")
    entries = _entries("/open", "/private/a", "/private/b", "/private/a")
    children, notes = link_tasks.tasks_for_sitemap(crawl, SITEMAP, entries, NOW)
    assert [child.payload.url for child in children] == [f"{ORIGIN}/open"]
    assert {note.step for note in notes} == {job_log_messages.ROBOTS}
    assert [note.context["url"] for note in notes] == [
        f"{ORIGIN}/private/a",
        f"{ORIGIN}/private/b",
    ]
    assert notes[0].context["found_on"] == SITEMAP.url


async def test_a_sitemap_of_forbidden_pages_does_not_fill_the_log() -> None:
    crawl = _crawl(b"User-agent: *\nDisallow: /\n")
    entries = _entries(*(f"/page-{n}-of-{n * 7}" for n in range(5000)))
    children, notes = link_tasks.tasks_for_sitemap(crawl, SITEMAP, entries, NOW)
    assert not children
    assert len(notes) <= 1000
