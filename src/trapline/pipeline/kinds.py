"""The kinds of jobs that visit pages, and of the tasks that they are made of."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from trapline.knowledge.config import IngestConfig
from trapline.model import ApplicationId, PageId, SourceId
from trapline.queue.kinds import Handler, Kind, Kinds
from trapline.queue.retries import RetryPolicy

# Jobs.
CRAWL: Final = "crawl"
SCRAPE: Final = "scrape"
BATCH: Final = "batch_scrape"
EXTRACT: Final = "extract"

MAP: Final = "map"
INGEST: Final = "ingest"

# Tasks.
KICKOFF: Final = "kickoff"
SITEMAP: Final = "kickoff_sitemap"
PAGE: Final = "single_urls"
FILE: Final = "file"
INDEX: Final = "index"
ASK: Final = "ask_for_crawl"
AWAIT: Final = "await_crawl"
CALL_OFF: Final = "call_off_crawl"
RENEW: Final = "renew"


class Kickoff(Struct, frozen=True):
    """Begin a crawl: read robots.txt, queue the start page and the sitemaps."""

    url: str


class SitemapTask(Struct, frozen=True, omit_defaults=True):
    """Read one sitemap; `guessed` ones need not be there."""

    url: str
    level: int = 0
    guessed: bool = False


class PageTask(Struct, frozen=True, omit_defaults=True):
    """Visit one page. `depth` counts links from the start; `found_on` is the first page with it."""

    url: str
    depth: int = 0
    found_on: str | None = None
    modified: datetime | None = None
    changes: str | None = None


class MapTask(Struct, frozen=True):
    """Find the URLs of a site."""

    url: str


class FileTask(Struct, frozen=True, omit_defaults=True):
    """Make one file searchable. `sha256` names its bytes, in hex."""

    source_id: SourceId
    uri: str
    name: str
    sha256: str
    size: int
    application_id: ApplicationId | None = None
    content_type: str | None = None
    title: str | None = None
    # What its sender says is wrong with it; then there are no bytes.
    error: str | None = None


class AskTask(Struct, frozen=True):
    """Ask a Firecrawl elsewhere to crawl for a source."""

    source_id: SourceId
    url: str
    limit: int
    max_depth: int


class AwaitTask(Struct, frozen=True):
    """Keep a job open until a crawl elsewhere says that it ended."""

    crawl: str


class CallOffTask(Struct, frozen=True):
    """End a crawl elsewhere whose job here was cancelled."""

    crawl: str


class RenewTask(Struct, frozen=True):
    """Make all texts of a source anew in another generation, then exchange the two."""

    source_id: SourceId
    generation: int
    config: IngestConfig


class IndexTask(Struct, frozen=True, omit_defaults=True):
    """Make one version of a page searchable."""

    source_id: SourceId
    url: str
    page_id: PageId
    version_id: int
    application_id: ApplicationId | None = None


_PATIENT = RetryPolicy(max_attempts=4, first=timedelta(seconds=2))
_INSISTENT = RetryPolicy(max_attempts=5, first=timedelta(seconds=5))


def crawl_kinds(
    kickoff: Handler | None = None,
    sitemap: Handler | None = None,
    page: Handler | None = None,
    survey: Handler | None = None,
    *,
    ingest: tuple[Kind, ...] | None = None,
) -> Kinds:
    """Return the kinds, with their handlers where there is a worker to run them."""
    return Kinds(
        (
            Kind(KICKOFF, Kickoff, kickoff, _PATIENT, stored=True),
            Kind(SITEMAP, SitemapTask, sitemap, _PATIENT, stored=True),
            Kind(PAGE, PageTask, page, _PATIENT, stored=True),
            Kind(MAP, MapTask, survey, _PATIENT),
            *(ingest or ingest_kinds()),
        )
    )


def ingest_kinds(handlers: Mapping[str, Handler] = MappingProxyType({})) -> tuple[Kind, ...]:
    """Return the kinds of tasks that make texts searchable; also jobs that visit pages have them."""
    run = handlers.get
    return (
        Kind(FILE, FileTask, run(FILE), RetryPolicy(max_attempts=3), stored=True),
        Kind(INDEX, IndexTask, run(INDEX), RetryPolicy(max_attempts=3), stored=True),
        Kind(ASK, AskTask, run(ASK), _INSISTENT),
        Kind(CALL_OFF, CallOffTask, run(CALL_OFF), _INSISTENT),
        Kind(AWAIT, AwaitTask, run(AWAIT), RetryPolicy(max_attempts=1)),
        Kind(RENEW, RenewTask, run(RENEW), RetryPolicy(max_attempts=3), timeout=timedelta(hours=6)),
    )


def stored_kinds() -> Kinds:
    """Return the kinds of tasks that are run again as they stand."""
    return Kinds.stored()
