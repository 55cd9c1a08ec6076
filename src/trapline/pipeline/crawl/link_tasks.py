"""Enqueue links, step seven: the tasks for links and sitemap entries that a crawl follows."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from trapline.errors import OUTCOMES, Category, TraplineError, VisitFailed
from trapline.frontier import canonical
from trapline.frontier.canonical_url import split_url
from trapline.frontier.priority import (
    SEED_PRIORITY,
    is_homepage,
    link_priority,
    link_rank,
    priority_of_rank,
    sitemap_priority,
)
from trapline.frontier.scope import ScopeDecision
from trapline.frontier.sitemaps import MAX_INDEX_DEPTH, EntryKind, SitemapEntry, likely_sitemaps
from trapline.model import Fetched, Link, Region
from trapline.pipeline.crawl import job_log_messages
from trapline.pipeline.crawl.job_context import JobContext, LinkFollowing
from trapline.pipeline.crawl.visit_result import LoggedResult, PageVisit, detail
from trapline.pipeline.kinds import PAGE, SITEMAP, PageTask, SitemapTask
from trapline.pipeline.submit import host_gate
from trapline.queue.finish import TaskResult
from trapline.queue.job_log import Note
from trapline.queue.tasks import NewTask, Task, TaskSource, Unique

# A sitemap may list fifty thousand pages that robots.txt forbids; this many are logged.
_MAX_REFUSED: Final = 1000


def link_following(context: JobContext) -> LinkFollowing:
    if context.following is None:
        raise TraplineError("Only a crawl has a kickoff and sitemaps.")
    return context.following


def tasks_for_links(
    context: JobContext, task: Task, visit: PageVisit, links: Sequence[Link]
) -> list[NewTask]:
    """Return the tasks for the links of a page that belong to the crawl."""
    if context.following is None:
        return []
    depth, now = visit.task.depth + 1, datetime.now(UTC)
    page, scope, link_filter = (
        visit.fetched.url,
        context.following.scope,
        context.following.link_filter,
    )
    ranks = _ranks_by_region(task.priority, depth, on_homepage=depth == 1 or is_homepage(page))
    if task.attempt > 1 or task.stalls:
        link_filter.forget((link.url for link in links), page)
    children = []
    for link in link_filter.unseen(links, min(ranks.values())):
        nofollow = "nofollow" in link.rel
        shown = scope.decide_link(nofollow=nofollow, hidden=link.hidden)
        if shown is not ScopeDecision.IN_SCOPE:
            continue
        decision = link_filter.decide(link.url, page, ranks[link.region], now)
        if decision is None:
            continue
        if decision.refusal is not None:
            visit.notes += job_log_messages.link_refused(decision, page)
            continue
        if not decision.seen:
            visit.discovered.append(decision.url)
        child = PageTask(url=decision.url, depth=depth, found_on=page)
        priority = priority_of_rank(ranks[link.region])
        children.append(_page_task(context, child, decision.key, priority, TaskSource.FOUND))
    return children


def _ranks_by_region(parent: int, depth: int, *, on_homepage: bool) -> dict[Region, int]:
    """Return the rank of a page's links: their priority by region, and their depth."""
    return {
        region: link_rank(link_priority(parent, region, on_homepage=on_homepage), depth)
        for region in Region
    }


def seed_task(context: JobContext, url: str) -> NewTask:
    return _page_task(
        context, PageTask(url=url), context.key(url), SEED_PRIORITY, TaskSource.SUBMITTED
    )


def _page_task(
    context: JobContext, page: PageTask, key: str, priority: int, source: TaskSource
) -> NewTask:
    return NewTask(
        PAGE,
        page,
        gate=host_gate(context.options, page.url),
        priority=_lifted(context, page.url, priority),
        unique=Unique(key),
        source=source,
    )


def _lifted(context: JobContext, url: str, priority: int) -> int:
    """Return the best priority of a page: by its links, by its traffic, as the homepage."""
    traffic = {} if context.following is None else context.following.traffic
    if traffic:
        priority = min(priority, traffic.get(split_url(url).path, priority))
    return SEED_PRIORITY if is_homepage(url) else priority


def sitemap_tasks(context: JobContext, url: str, named: Sequence[str]) -> Iterator[NewTask]:
    """Return the tasks for the sitemaps of robots.txt, else for the usual locations."""
    listed = [canonical(sitemap, url) for sitemap in named] or likely_sitemaps(url)
    for sitemap in dict.fromkeys(listed):
        payload = SitemapTask(url=sitemap, guessed=not named)
        yield NewTask(
            SITEMAP,
            payload,
            gate=host_gate(context.options, sitemap),
            unique=Unique(f"sitemap {sitemap}"),
            counted=False,
        )


def tasks_for_sitemap(
    context: JobContext, sitemap: SitemapTask, entries: Sequence[SitemapEntry], now: datetime
) -> tuple[list[NewTask], list[Note]]:
    """Return the tasks for a sitemap's entries, and log notes about refused pages."""
    children: list[NewTask] = []
    notes: list[Note] = []
    link_filter = link_following(context).link_filter
    for entry in entries:
        if entry.kind is EntryKind.SITEMAP:
            if sitemap.level < MAX_INDEX_DEPTH:
                children.append(_nested_sitemap_task(context, sitemap, entry))
            continue
        priority = sitemap_priority(entry.priority)
        decision = link_filter.decide(entry.url, sitemap.url, link_rank(priority, 1), now)
        if decision is None:
            continue
        if decision.refusal is not None:
            if len(notes) < _MAX_REFUSED:
                notes += job_log_messages.link_refused(decision, sitemap.url)
            continue
        page = PageTask(decision.url, 1, sitemap.url, entry.modified, entry.changes)
        children.append(_page_task(context, page, decision.key, priority, TaskSource.SITEMAP))
    return children, notes


def sitemap_failure(context: JobContext, sitemap: SitemapTask, fetched: Fetched) -> TaskResult:
    """Return the result for a sitemap that cannot be fetched; a guessed one may not exist.

    Where the likeliest one does not exist, a crawl of sitemaps only has its start page: else it might
    have nothing.
    """
    gone = OUTCOMES[fetched.exit_code].category is Category.GONE
    result: dict[str, object] = {"url": sitemap.url, "problem": fetched.message}
    if sitemap.guessed:
        options = link_following(context).options
        alone = options.sitemap == "only" and sitemap.url == likely_sitemaps(options.url)[0]
        return TaskResult(
            LoggedResult(result), children=[seed_task(context, options.url)] if alone else []
        )
    logged = LoggedResult(result, [job_log_messages.sitemap_failed(sitemap.url, fetched)])
    if gone:
        return TaskResult(logged)
    error = VisitFailed(fetched.exit_code, detail(fetched), retry_after=fetched.retry_after)
    return TaskResult(logged, error=error)


def _nested_sitemap_task(context: JobContext, sitemap: SitemapTask, entry: SitemapEntry) -> NewTask:
    url = canonical(entry.url, sitemap.url)
    return NewTask(
        SITEMAP,
        SitemapTask(url=url, level=sitemap.level + 1),
        gate=host_gate(context.options, url),
        unique=Unique(f"sitemap {url}"),
        counted=False,
    )
