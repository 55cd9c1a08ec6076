"""The kinds of jobs that visit pages, and of the tasks that they are made of."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.queue.kinds import Handler, Kind, Kinds
from trapline.queue.retries import RetryPolicy

# Jobs.
CRAWL: Final = "crawl"
SCRAPE: Final = "scrape"
BATCH: Final = "batch_scrape"
EXTRACT: Final = "extract"

MAP: Final = "map"

# Tasks.
KICKOFF: Final = "kickoff"
SITEMAP: Final = "kickoff_sitemap"
PAGE: Final = "single_urls"


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


_PATIENT = RetryPolicy(max_attempts=4, first=timedelta(seconds=2))


def crawl_kinds(
    kickoff: Handler | None = None,
    sitemap: Handler | None = None,
    page: Handler | None = None,
    survey: Handler | None = None,
) -> Kinds:
    """Return the kinds, with their handlers where there is a worker to run them."""
    return Kinds(
        (
            Kind(KICKOFF, Kickoff, kickoff, _PATIENT, stored=True),
            Kind(SITEMAP, SitemapTask, sitemap, _PATIENT, stored=True),
            Kind(PAGE, PageTask, page, _PATIENT, stored=True),
            Kind(MAP, MapTask, survey, _PATIENT),
        )
    )


def stored_kinds() -> Kinds:
    """Return the kinds of tasks that are run again as they stand."""
    return Kinds.stored()
