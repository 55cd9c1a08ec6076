"""A scraper in the caller's own process, and the parts that it shares with a worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.fetch import Fetcher
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.frontier.recrawl import Interval
from trapline.measure import Recorder
from trapline.pipeline.crawl.store_visits import VisitStore
from trapline.pipeline.crawl.visit import VisitHandlers
from trapline.pipeline.kinds import crawl_kinds
from trapline.pipeline.scrape.scraper import Scraper
from trapline.queue.agents import Agent
from trapline.queue.finish import Finisher
from trapline.queue.inline_tasks import InlineTasks
from trapline.queue.notify import Notifier
from trapline.queue.supervisor import supervise
from trapline.settings import Settings
from trapline.store.blobs import BlobStore

GRACE_SECONDS: Final = 10
"""How long a stopping process waits until every answered scrape is stored."""


@asynccontextmanager
async def open_scraper(
    database: Database, settings: Settings, *, name: str = "scrape"
) -> AsyncIterator[Scraper]:
    """Scrape in this process, without a worker for queued tasks."""
    async with (
        Fetcher(settings.fetch) as fetcher,
        BrowserFetcher(settings.browser, fetcher) as browser,
    ):
        agent = Agent(database, name, 1, sorted(crawl_kinds()), settings.fetch.user_agent)
        notifier = Notifier(database)
        await agent.register()
        alive = asyncio.create_task(supervise("agent", agent.keep_alive), name="agent")
        visit_store = make_visit_store(settings, agent)
        scraper = make_scraper(
            VisitHandlers(database, settings, fetcher, browser=browser),
            visit_store,
            agent,
            notifier,
        )
        try:
            yield scraper
        finally:
            await scraper.inline_tasks.write_behind.aclose(GRACE_SECONDS)
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)
            await notifier.aclose()
            await agent.finish()


def make_visit_store(
    settings: Settings, agent: Agent, recorder: Recorder | None = None
) -> VisitStore:
    interval = Interval(
        timedelta(hours=settings.crawl.recrawl_least_hours),
        timedelta(hours=settings.crawl.recrawl_most_hours),
    )
    return VisitStore(BlobStore.of(settings.blobs), agent, interval, recorder)


def make_scraper(
    handlers: VisitHandlers, visit_store: VisitStore, agent: Agent, notifier: Notifier
) -> Scraper:
    database, kinds = handlers.database, crawl_kinds()
    finisher = Finisher(database, kinds, visit_store.store)
    inline_tasks = InlineTasks(database, kinds, agent, finisher, notifier)
    return Scraper(database, handlers, inline_tasks, visit_store.blobs)
