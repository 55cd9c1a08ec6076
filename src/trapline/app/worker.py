"""A worker with the handlers of all kinds of tasks, its maintenance and its webhooks."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from trapline.api.services import Services
from trapline.app import duties, process_memory
from trapline.app.scraper import GRACE_SECONDS, make_scraper, make_visit_store
from trapline.db.pool import Database
from trapline.fetch import Fetcher
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.fetch.post import Poster
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.search import Searcher
from trapline.logs import get_logger
from trapline.measure import Recorder
from trapline.measure.loop_watchdog import watch_loop
from trapline.pipeline import webhook_bodies
from trapline.pipeline.crawl.url_discovery import UrlDiscovery
from trapline.pipeline.crawl.visit import VisitHandlers
from trapline.pipeline.event_dispatch import EventDispatcher, live_streams
from trapline.pipeline.ingest.external_parser import ExternalParser
from trapline.pipeline.ingest.firecrawl_inbox import FirecrawlInbox
from trapline.pipeline.ingest.index_task import IndexTasks
from trapline.pipeline.ingest.reembed import ReembedTask
from trapline.pipeline.ingest.remote_crawls import RemoteCrawls
from trapline.pipeline.ingest.remote_firecrawl import RemoteFirecrawl
from trapline.pipeline.kinds import (
    AWAIT_REMOTE_CRAWL,
    CANCEL_REMOTE_CRAWL,
    EXTRACT,
    FILE,
    INDEX,
    REEMBED,
    START_REMOTE_CRAWL,
    crawl_kinds,
    ingest_kinds,
)
from trapline.pipeline.llm import LanguageModel
from trapline.pipeline.reports.job_results import JobResults
from trapline.pipeline.scrape.llm_extract import LlmExtract, extract_kind
from trapline.pipeline.scrape.mapper import Mapper
from trapline.pipeline.scrape.scraper import Scraper
from trapline.pipeline.scrape.web_search import WebSearch
from trapline.queue.agents import Agent
from trapline.queue.gate_release import GateRelease
from trapline.queue.kinds import Kinds
from trapline.queue.maintenance import loop as maintenance
from trapline.queue.notify import Notifier
from trapline.queue.supervisor import supervise
from trapline.queue.worker.worker import Worker
from trapline.settings import Settings

log = get_logger(__name__)


async def work(settings: Settings, *, name: str, concurrency: int) -> None:
    """Run tasks until a signal comes, then finish or release the claimed ones."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with (
        Database.open(settings) as database,
        run_worker(database, settings, name=name, concurrency=concurrency),
    ):
        log.info("working", name=name, concurrency=concurrency)
        await stopped.wait()
    log.info("stopped")


@dataclass(frozen=True, slots=True)
class _Clients:
    """Connections to other servers, open as long as the worker runs."""

    fetcher: Fetcher
    browser: BrowserFetcher
    poster: Poster
    model: LanguageModel
    parser: ExternalParser
    web_search: WebSearch
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A worker, and the services that an API in the same process offers."""

    worker: Worker
    services: Services
    index_tasks: IndexTasks
    dispatcher: EventDispatcher
    recorder: Recorder

    @property
    def scraper(self) -> Scraper:
        return self.services.scraper


@asynccontextmanager
async def run_worker(
    database: Database, settings: Settings, *, name: str = "worker", concurrency: int = 100
) -> AsyncIterator[RunningWorker]:
    """Run a worker with all that its tasks need, until the block is left."""
    process_memory.spare_collector()
    process_memory.keep_freed_memory()
    async with _open_clients(database, settings) as clients:
        names = sorted({*crawl_kinds(), EXTRACT})
        agent = Agent(database, name, concurrency, names, settings.fetch.user_agent)
        running = _assemble(settings, clients, agent)
        async with _run(database, settings, running):
            yield running


@asynccontextmanager
async def _open_clients(database: Database, settings: Settings) -> AsyncIterator[_Clients]:
    recorder = Recorder()
    searcher = Searcher.of(settings.vectors, Embedders(settings.embedding), recorder)
    async with (
        Fetcher(settings.fetch) as fetcher,
        BrowserFetcher(settings.browser, fetcher) as browser,
        Poster(settings.fetch, settings.webhooks) as poster,
        LanguageModel(settings.llm) as model,
        ExternalParser(settings.parser) as parser,
        WebSearch(settings.web_search, database, searcher) as web_search,
    ):
        yield _Clients(fetcher, browser, poster, model, parser, web_search, recorder)


def _assemble(settings: Settings, clients: _Clients, agent: Agent) -> RunningWorker:
    database, model = agent.database, clients.model
    notifier, gate_release = Notifier(database), GateRelease(database)
    visit_store = make_visit_store(settings, agent, clients.recorder)
    handlers = VisitHandlers(
        database, settings, clients.fetcher, model, gate_release, clients.browser
    )
    scraper = make_scraper(handlers, visit_store, agent, notifier)
    inbox = FirecrawlInbox(database, settings, visit_store.blobs)
    index_tasks = IndexTasks(
        database,
        settings,
        visit_store.blobs,
        Embedders(settings.embedding),
        clients.parser,
        clients.recorder,
    )
    kinds = _kinds(handlers, settings, index_tasks, inbox)
    kinds.register(extract_kind(LlmExtract(model, scraper).extract))
    worker = Worker(agent, kinds, notifier, gate_release, store=visit_store.store)
    results = JobResults(database, visit_store.blobs)
    services = Services(
        scraper=scraper,
        mapper=Mapper.sharing(scraper),
        results=results,
        feeds=live_streams(database, worker.listener),
        notifier=notifier,
        model=model,
        web_search=clients.web_search,
        blobs=visit_store.blobs,
        inbox=inbox,
        browser=clients.browser,
    )
    render = webhook_bodies.renderer(results)
    dispatcher = EventDispatcher(database, clients.poster, render, worker.listener)
    return RunningWorker(worker, services, index_tasks, dispatcher, clients.recorder)


def _kinds(
    handlers: VisitHandlers, settings: Settings, index_tasks: IndexTasks, inbox: FirecrawlInbox
) -> Kinds:
    """Return the kinds of tasks with the handlers that run them."""
    database = handlers.database
    remote = RemoteFirecrawl(settings.firecrawl)
    ingest = {
        FILE: index_tasks.index_file,
        INDEX: index_tasks.index_page,
        AWAIT_REMOTE_CRAWL: inbox.await_end,
        REEMBED: ReembedTask(database, index_tasks).run,
        START_REMOTE_CRAWL: RemoteCrawls(database, settings, remote).start,
        CANCEL_REMOTE_CRAWL: remote.cancel,
    }
    return crawl_kinds(
        handlers.kickoff,
        handlers.sitemap,
        handlers.page,
        UrlDiscovery(database, handlers).run,
        ingest=ingest_kinds(ingest),
    )


@asynccontextmanager
async def _run(
    database: Database, settings: Settings, running: RunningWorker
) -> AsyncIterator[None]:
    """Run the worker and its background tasks; at the end, the worker stops first."""
    services, worker = running.services, running.worker
    working = asyncio.create_task(worker.run(), name="worker")
    working.add_done_callback(cancel := _cancel_caller())
    chosen = duties.all_duties(settings, services.blobs, services.web_search.searcher)
    background = [
        asyncio.create_task(supervise(part, run), name=part)
        for part, run in (
            ("maintenance", partial(maintenance.run, database, chosen)),
            ("event dispatch", running.dispatcher.run),
            ("measurements", partial(running.recorder.run, database)),
            ("event loop watchdog", watch_loop),
        )
    ]
    try:
        yield
    finally:
        # From here on this function awaits the worker's end.
        working.remove_done_callback(cancel)
        await running.scraper.inline_tasks.write_behind.aclose(GRACE_SECONDS)
        worker.stop()
        try:
            await working
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            running.index_tasks.close()


def _cancel_caller() -> Callable[[asyncio.Task[None]], None]:
    """Return a callback that cancels the caller's task if the worker dies; it would wait for ever."""
    waiting = asyncio.current_task()

    def cancel(worker: asyncio.Task[None]) -> None:
        if waiting is not None and not worker.cancelled() and worker.exception() is not None:
            waiting.cancel()

    return cancel
