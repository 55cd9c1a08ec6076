"""Links and sitemaps become tasks: what a crawl visits next."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from trapline.errors import OUTCOMES, Category, TraplineError, VisitFailed
from trapline.frontier import canonical
from trapline.frontier.priority import SEED_PRIORITY, link_priority, sitemap_priority
from trapline.frontier.scope import Verdict as Scoped
from trapline.frontier.sitemaps import MAX_INDEX_DEPTH, EntryKind, SitemapEntry, likely_sitemaps
from trapline.model import Fetched, Link
from trapline.pipeline import noting
from trapline.pipeline.crawls import Crawl, Spread
from trapline.pipeline.kinds import PAGE, SITEMAP, PageTask, SitemapTask
from trapline.pipeline.submit import host_gate
from trapline.pipeline.visits import PageVisit, Told, detail
from trapline.queue.finishing import Finished
from trapline.queue.logbook import Note
from trapline.queue.tasks import NewTask, Source, Task, Unique

# A sitemap may name fifty thousand pages that robots.txt forbids; as many are told of a job.
_MOST_REFUSED: Final = 1000


def spread_of(crawl: Crawl) -> Spread:
    if crawl.spread is None:
        raise TraplineError("Only a crawl is kicked off and reads sitemaps.")
    return crawl.spread


def follow(crawl: Crawl, task: Task, visit: PageVisit, links: Sequence[Link]) -> list[NewTask]:
    """Return the tasks for those links of a page that belong to the crawl."""
    if crawl.spread is None:
        return []
    depth, now = visit.task.depth + 1, datetime.now(UTC)
    page, scope, judge = visit.fetched.url, crawl.spread.scope, crawl.spread.judge
    if task.attempt > 1 or task.stalls:
        judge.forget((link.url for link in links), page)
    children = []
    for link in judge.fresh(links, depth):
        nofollow = "nofollow" in link.rel
        shown = scope.link_verdict(nofollow=nofollow, hidden=link.hidden)
        if shown is not Scoped.IN_SCOPE:
            continue
        judged = judge.judge(link.url, page, depth, now)
        if judged is None:
            continue
        if judged.refusal is not None:
            visit.notes += noting.refused(judged, page)
            continue
        visit.discovered.append(judged.url)
        child = PageTask(url=judged.url, depth=depth, found_on=page)
        priority = link_priority(depth, link.region)
        children.append(_page_task(crawl, child, judged.key, priority, Source.FOUND))
    return children


def seed(crawl: Crawl, url: str) -> NewTask:
    return _page_task(crawl, PageTask(url=url), crawl.key(url), SEED_PRIORITY, Source.SUBMITTED)


def _page_task(crawl: Crawl, page: PageTask, key: str, priority: int, source: Source) -> NewTask:
    return NewTask(
        PAGE,
        page,
        gate=host_gate(crawl.options, page.url),
        priority=priority,
        unique=Unique(key),
        source=source,
    )


def sitemap_tasks(crawl: Crawl, url: str, named: Sequence[str]) -> Iterator[NewTask]:
    """Name the sitemaps of robots.txt; where it has none, the usual places."""
    listed = [canonical(sitemap, url) for sitemap in named] or likely_sitemaps(url)
    for sitemap in dict.fromkeys(listed):
        payload = SitemapTask(url=sitemap, guessed=not named)
        yield NewTask(
            SITEMAP,
            payload,
            gate=host_gate(crawl.options, sitemap),
            unique=Unique(f"sitemap {sitemap}"),
            counted=False,
        )


def from_sitemap(
    crawl: Crawl, sitemap: SitemapTask, entries: Sequence[SitemapEntry], now: datetime
) -> tuple[list[NewTask], list[Note]]:
    """Return the tasks for what a sitemap names, and what is said of pages that may not be visited."""
    children: list[NewTask] = []
    notes: list[Note] = []
    judge = spread_of(crawl).judge
    for entry in entries:
        if entry.kind is EntryKind.SITEMAP:
            if sitemap.level < MAX_INDEX_DEPTH:
                children.append(_nested(crawl, sitemap, entry))
            continue
        judged = judge.judge(entry.url, sitemap.url, 1, now)
        if judged is None:
            continue
        if judged.refusal is not None:
            if len(notes) < _MOST_REFUSED:
                notes += noting.refused(judged, sitemap.url)
            continue
        page = PageTask(judged.url, 1, sitemap.url, entry.modified, entry.changes)
        priority = sitemap_priority(entry.priority)
        children.append(_page_task(crawl, page, judged.key, priority, Source.SITEMAP))
    return children, notes


def without_sitemap(sitemap: SitemapTask, fetched: Fetched) -> Finished:
    """End the task of a sitemap that cannot be had: one that was guessed need not be there."""
    gone = OUTCOMES[fetched.exit_code].category is Category.GONE
    result: dict[str, object] = {"url": sitemap.url, "problem": fetched.message}
    if sitemap.guessed:
        return Finished(Told(result))
    told = Told(result, [noting.no_sitemap(sitemap.url, fetched)])
    if gone:
        return Finished(told)
    error = VisitFailed(fetched.exit_code, detail(fetched), retry_after=fetched.retry_after)
    return Finished(told, error=error)


def _nested(crawl: Crawl, sitemap: SitemapTask, entry: SitemapEntry) -> NewTask:
    url = canonical(entry.url, sitemap.url)
    return NewTask(
        SITEMAP,
        SitemapTask(url=url, level=sitemap.level + 1),
        gate=host_gate(crawl.options, url),
        unique=Unique(f"sitemap {url}"),
        counted=False,
    )
