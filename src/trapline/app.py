"""The one place where things are wired together."""

import asyncio
import ctypes
import gc
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import uvicorn

from trapline.api.access import is_loopback
from trapline.api.engine import Engine
from trapline.api.firecrawl import hooks
from trapline.archive.sql import rollups
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.db.sql import tenancy as queries
from trapline.errors import SettingsError, Unavailable
from trapline.fetch import Fetcher
from trapline.fetch.posting import Poster
from trapline.frontier.recrawl import Interval
from trapline.knowledge import tally, vectors
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.indexing import drop_older_generations
from trapline.knowledge.keyword.writing import merge_crowded, renew_hollow
from trapline.knowledge.mirroring import Mirroring
from trapline.knowledge.qdrant import Qdrant
from trapline.knowledge.searching import Searcher
from trapline.logs import get_logger
from trapline.measure import Recorder
from trapline.measure.recorder import drop_sums
from trapline.measure.sql import rollups as measured_days
from trapline.pipeline import followups, renewing, retention, sites, templates
from trapline.pipeline import intake as intakes
from trapline.pipeline.external_parser import ExternalParser
from trapline.pipeline.extracts import Gathering, extract_kind
from trapline.pipeline.ingesting import Ingesting
from trapline.pipeline.intake import Intake
from trapline.pipeline.keeping import Keeping
from trapline.pipeline.kinds import (
    ASK,
    AWAIT,
    CALL_OFF,
    FILE,
    INDEX,
    RENEW,
    crawl_kinds,
    ingest_kinds,
)
from trapline.pipeline.language import LanguageModel
from trapline.pipeline.mapping import Mapper
from trapline.pipeline.remote_crawls import Commissioning
from trapline.pipeline.remote_firecrawl import Elsewhere
from trapline.pipeline.renewing import Renewing
from trapline.pipeline.results import Results
from trapline.pipeline.scraping import Scraper
from trapline.pipeline.searching import Searching
from trapline.pipeline.site_urls import Surveyor
from trapline.pipeline.steps import Steps
from trapline.pipeline.telling import Telling, feeds
from trapline.pipeline.telling import duties as telling_duties
from trapline.queue.agents import Agent
from trapline.queue.direct import Direct
from trapline.queue.finishing import Finisher
from trapline.queue.leaving import Leaving
from trapline.queue.maintenance import loop as maintenance
from trapline.queue.maintenance import schedules
from trapline.queue.maintenance.duty import Duty
from trapline.queue.maintenance.partitions import Log, duty
from trapline.queue.notices import Bell
from trapline.queue.worker import Worker
from trapline.settings import Settings
from trapline.store import sweeping
from trapline.store.blobs import Blobs

log = get_logger(__name__)

# The logs of visits, which go together when their time is over.
VISIT_LOGS = (
    Log("archive", "visit", "started_at", roll_up=rollups.roll_up_visits),
    *(Log("archive", table, "started_at") for table in ("request", "redirect", "file")),
)

MEASUREMENTS = (
    Log("measure", "operation", "recorded_at", roll_up=measured_days.roll_up_operations),
    Log("measure", "request", "recorded_at", roll_up=measured_days.roll_up_requests),
)

# How long a stopping server waits for requests that are still being answered.
_GRACE_SECONDS = 10
# After so many the collector looks at the new ones: a few pages' worth, where Python's own number is 700.
_NEW_OBJECTS = 5_000
# What glibc's malloc is told by number: how much may lie free before it goes back to the system, and what
# is so large that it is asked of the system by itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_FREE = 64 << 20
_LARGEST_IN_HEAP = 32 << 20


async def serve(settings: Settings) -> None:
    """Answer HTTP until a signal comes, then finish what is under way."""
    # A hundred routes take longer to make than all else: only a server pays for them.
    from trapline.api import application  # noqa: PLC0415
    from trapline.api.protocol import BoundedProtocol  # noqa: PLC0415

    listener = _bind(settings)
    async with Database.open(settings) as database:
        await _refuse_exposure(database, settings)
        async with working(database, settings, name="serve") as work:
            server = _Server(
                uvicorn.Config(
                    application.build(database, settings, work.engine, work.recorder),
                    http=BoundedProtocol,
                    log_config=None,
                    access_log=False,
                    lifespan="off",
                    server_header=False,
                    timeout_graceful_shutdown=_GRACE_SECONDS,
                    # Compressing each message anew for each watcher costs more than anything else
                    # that is done for them, and a window of tens of kilobytes for each.
                    ws_per_message_deflate=False,
                )
            )
            await server.serve(sockets=[listener])
    log.info("stopped")


async def work(settings: Settings, *, name: str, concurrency: int) -> None:
    """Run tasks until a signal comes, then finish or hand back what is in hand."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with (
        Database.open(settings) as database,
        working(database, settings, name=name, concurrency=concurrency),
    ):
        log.info("working", name=name, concurrency=concurrency)
        await stopped.wait()
    log.info("stopped")


@cache
def _spare_the_collector() -> None:
    """Let Python's collector leave alone what was loaded, which stays, and look at the rest less often.

    It had to look through half a million objects time and again to find that nothing of them is garbage.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)


@cache
def keep_memory() -> None:
    """Let the C library keep what a large page took, up to a bound.

    Given back to the system, it comes back for the next one in small pieces that must be cleared first:
    twelve thousand of them for a page of 2.5 MB.
    """
    with suppress(AttributeError, OSError):  # Other libraries than glibc have no such thing.
        options = ctypes.CDLL(None).mallopt
        options(_TRIM_THRESHOLD, _KEPT_FREE)
        options(_MMAP_THRESHOLD, _LARGEST_IN_HEAP)


@dataclass(frozen=True, slots=True)
class Work:
    """What runs in a process that works: a worker for what is queued, an engine for who waits."""

    worker: Worker
    engine: Engine
    recorder: Recorder

    @property
    def scraper(self) -> Scraper:
        return self.engine.scraper


@asynccontextmanager
async def working(
    database: Database, settings: Settings, *, name: str = "worker", concurrency: int = 100
) -> AsyncIterator[Work]:
    """Run a worker with everything that tasks need, until the block is left."""
    _spare_the_collector()
    keep_memory()
    recorder = Recorder()
    async with (
        Fetcher(settings) as fetcher,
        Poster(settings) as poster,
        LanguageModel(settings) as model,
        ExternalParser(settings) as parser,
        Searching(
            settings, database, Searcher.of(settings, Embedders(settings), recorder)
        ) as searching,
    ):
        steps = Steps(database, settings, fetcher, model)
        keeping = _keeping(settings)
        gathering = Gathering(model)
        ingesting = Ingesting(database, settings, keeping.blobs, Embedders(settings), parser)
        intake = Intake(database, settings, keeping.blobs)
        surveyor = Surveyor(database, steps)
        kinds = crawl_kinds(
            steps.kickoff,
            steps.sitemap,
            steps.page,
            surveyor.run,
            ingest=ingest_kinds(
                {
                    FILE: ingesting.file,
                    INDEX: ingesting.index,
                    AWAIT: intake.awaited,
                    RENEW: Renewing(database, ingesting).run,
                    ASK: Commissioning(database, settings).ask,
                    CALL_OFF: Elsewhere(settings).call_off,
                }
            ),
        )
        kinds.register(extract_kind(gathering.extract))
        worker = Worker(
            database,
            kinds,
            concurrency=concurrency,
            name=name,
            user_agent=settings.user_agent,
            store=keeping.keep,
        )
        keeping.agent = worker.agent
        keeping.recorder = ingesting.recorder = recorder
        steps.leaving = Leaving(database, worker.freed)
        scraper = gathering.scraper = _scraper(steps, keeping, worker.agent, worker.bell)
        results = Results(database, keeping.blobs)
        telling = Telling(database, poster, hooks.renderer(results), worker.ears)
        engine = Engine(
            scraper=scraper,
            mapper=Mapper.beside(scraper),
            results=results,
            feeds=feeds(database, worker.ears),
            bell=worker.bell,
            model=model,
            searching=searching,
        )
        running = asyncio.create_task(worker.run(), name="worker")
        running.add_done_callback(stop := _stopper())
        beside = [
            asyncio.create_task(
                maintenance.run(database, _duties(settings, keeping.blobs, searching.searcher)),
                name="maintenance",
            ),
            asyncio.create_task(telling.run(), name="telling"),
            asyncio.create_task(recorder.run(database), name="measurements"),
        ]
        try:
            yield Work(worker, engine, recorder)
        finally:
            # From here on its end is waited for.
            running.remove_done_callback(stop)
            await scraper.direct.afterwards.aclose(_GRACE_SECONDS)
            worker.stop()
            try:
                await running
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
                ingesting.close()


def _stopper() -> Callable[[asyncio.Task[None]], None]:
    """Return what ends the caller's task when the worker dies: it would wait for ever for its work."""
    waiting = asyncio.current_task()

    def stop(worker: asyncio.Task[None]) -> None:
        if waiting is not None and not worker.cancelled() and worker.exception() is not None:
            waiting.cancel()

    return stop


def _duties(settings: Settings, blobs: Blobs, searcher: Searcher) -> list[Duty]:
    """Return all that keeps the database in order."""
    return [
        *maintenance.all_duties(settings),
        *schedules.duties(templates.create),
        *retention.duties(),
        duty("archive partitions", VISIT_LOGS),
        duty("measurement partitions", MEASUREMENTS),
        Duty("sums of measurements", drop_sums, every=timedelta(hours=1)),
        *followups.duties(),
        *sites.duties(),
        *telling_duties(),
        *intakes.duties(),
        *renewing.duties(),
        _sweeping(blobs, settings),
        Duty("keyword index", merge_crowded, every=timedelta(seconds=15)),
        Duty("ingestion tally", tally.fold, every=timedelta(seconds=10)),
        Duty("hollow segments", renew_hollow, every=timedelta(minutes=10)),
        Duty("older generations", drop_older_generations, every=timedelta(minutes=1)),
        Duty(
            "vector indexes",
            vectors.tend_indexes,
            every=timedelta(minutes=5),
            longest=vectors.LONGEST,
        ),
        _mirroring(searcher.qdrant),
    ]


def _mirroring(qdrant: Qdrant | None) -> Duty:
    every = timedelta(hours=1) if qdrant is None else timedelta(seconds=2)
    work = Mirroring(qdrant).tend
    return Duty("vectors in Qdrant", work, every=every, longest=timedelta(minutes=10))


def _sweeping(blobs: Blobs, settings: Settings) -> Duty:
    grace = timedelta(hours=settings.blob_grace_hours)

    async def work(database: Database) -> int:
        return await sweeping.sweep(database, blobs, grace)

    return Duty("blob sweep", work, every=timedelta(hours=1), longest=timedelta(hours=1))


@asynccontextmanager
async def scraping(
    database: Database, settings: Settings, *, name: str = "scrape"
) -> AsyncIterator[Scraper]:
    """Scrape in this process, without a worker for what others queue."""
    async with Fetcher(settings) as fetcher:
        agent = Agent(database, name, 1, sorted(crawl_kinds()), settings.user_agent)
        bell = Bell(database)
        await agent.register()
        alive = asyncio.create_task(agent.keep_alive(), name="agent")
        scraper = _scraper(Steps(database, settings, fetcher), _keeping(settings), agent, bell)
        try:
            yield scraper
        finally:
            await scraper.direct.afterwards.aclose(_GRACE_SECONDS)
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)
            await bell.aclose()
            await agent.finish()


def _keeping(settings: Settings) -> Keeping:
    interval = Interval(
        timedelta(hours=settings.recrawl_least_hours), timedelta(hours=settings.recrawl_most_hours)
    )
    return Keeping(Blobs.of(settings), interval=interval)


def _scraper(steps: Steps, keeping: Keeping, agent: Agent, bell: Bell) -> Scraper:
    keeping.agent = agent
    kinds = crawl_kinds()
    finisher = Finisher(steps.database, kinds, keeping.keep)
    direct = Direct(steps.database, kinds, agent, finisher, bell)
    return Scraper(steps.database, steps, direct, keeping.blobs)


class _Server(uvicorn.Server):
    """uvicorn, but it says where it serves once it does, and ends in peace after a signal."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            log.info("serving", url=url, docs=f"{url}/docs")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal without raising it again afterwards, as the original does."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def _bind(settings: Settings) -> socket.socket:
    """Take the port before anything is started: a taken one is the most common mistake."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise Unavailable(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror or error}."
            " Choose another with TRAPLINE_HOST and TRAPLINE_PORT, or --host and --port."
        ) from None
    return listener


async def _refuse_exposure(database: Database, settings: Settings) -> None:
    """Make the default organisation; refuse to be reachable from elsewhere without keys."""
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
        if is_loopback(settings.host) or await queries.any_key(conn):
            return
    raise SettingsError(
        f"TRAPLINE_HOST={settings.host} can be reached from other machines, but there is no API"
        " key. Create one first: trapline keys create NAME"
    )
