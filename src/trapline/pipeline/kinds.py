"""Kinds of jobs and tasks: their stored names, payloads and retry policies."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from trapline.knowledge.source_config import IngestConfig
from trapline.model import ApplicationId, PageId, SourceId
from trapline.queue.kinds import Handler, Kind, Kinds
from trapline.queue.retry_policy import RetryPolicy

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
START_REMOTE_CRAWL: Final = "ask_for_crawl"
AWAIT_REMOTE_CRAWL: Final = "await_crawl"
CANCEL_REMOTE_CRAWL: Final = "call_off_crawl"
REEMBED: Final = "renew"


class Kickoff(Struct, frozen=True):
    """Start a crawl: read robots.txt, enqueue the start page and the sitemaps."""

    url: str


class SitemapTask(Struct, frozen=True, omit_defaults=True):
    """Read one sitemap; a `guessed` one may not exist."""

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
    """Index one file. `sha256` is the hash of its bytes, in hex."""

    source_id: SourceId
    uri: str
    name: str
    sha256: str
    size: int
    application_id: ApplicationId | None = None
    content_type: str | None = None
    title: str | None = None
    # Why the sender could not read it; then there are no bytes.
    error: str | None = None


class StartRemoteCrawl(Struct, frozen=True):
    """Start a crawl on a remote Firecrawl for a source."""

    source_id: SourceId
    url: str
    limit: int
    max_depth: int


class AwaitRemoteCrawl(Struct, frozen=True):
    """Keep a job open until a remote crawl reports its end."""

    crawl: str


class CancelRemoteCrawl(Struct, frozen=True):
    """Cancel a remote crawl whose job here was cancelled."""

    crawl: str


class ReembedSource(Struct, frozen=True):
    """Re-embed a source as a new generation, then swap the two."""

    source_id: SourceId
    generation: int
    config: IngestConfig


class IndexTask(Struct, frozen=True, omit_defaults=True):
    """Index one version of a page."""

    source_id: SourceId
    url: str
    page_id: PageId
    version_id: int
    application_id: ApplicationId | None = None


_VISIT_RETRIES = RetryPolicy(max_attempts=4, first=timedelta(seconds=2))
_REMOTE_RETRIES = RetryPolicy(max_attempts=5, first=timedelta(seconds=5))


def crawl_kinds(
    kickoff: Handler | None = None,
    sitemap: Handler | None = None,
    page: Handler | None = None,
    map_: Handler | None = None,
    *,
    ingest: tuple[Kind, ...] | None = None,
) -> Kinds:
    """Return the kinds, with handlers in a process that runs tasks."""
    return Kinds(
        (
            Kind(KICKOFF, Kickoff, kickoff, _VISIT_RETRIES, stored=True),
            Kind(SITEMAP, SitemapTask, sitemap, _VISIT_RETRIES, stored=True),
            Kind(PAGE, PageTask, page, _VISIT_RETRIES, stored=True),
            Kind(MAP, MapTask, map_, _VISIT_RETRIES),
            *(ingest or ingest_kinds()),
        )
    )


def ingest_kinds(handlers: Mapping[str, Handler] = MappingProxyType({})) -> tuple[Kind, ...]:
    """Return the kinds of indexing tasks, which jobs that visit pages have too."""
    run = handlers.get
    return (
        Kind(FILE, FileTask, run(FILE), RetryPolicy(max_attempts=3), stored=True),
        Kind(INDEX, IndexTask, run(INDEX), RetryPolicy(max_attempts=3), stored=True),
        Kind(START_REMOTE_CRAWL, StartRemoteCrawl, run(START_REMOTE_CRAWL), _REMOTE_RETRIES),
        Kind(CANCEL_REMOTE_CRAWL, CancelRemoteCrawl, run(CANCEL_REMOTE_CRAWL), _REMOTE_RETRIES),
        Kind(
            AWAIT_REMOTE_CRAWL,
            AwaitRemoteCrawl,
            run(AWAIT_REMOTE_CRAWL),
            RetryPolicy(max_attempts=1),
        ),
        Kind(
            REEMBED,
            ReembedSource,
            run(REEMBED),
            RetryPolicy(max_attempts=3),
            timeout=timedelta(hours=6),
        ),
    )
