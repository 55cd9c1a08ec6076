"""The services that the API calls: the parts of a process that runs a worker."""

from dataclasses import dataclass

from trapline.deliver.live_streams import LiveStreams
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.pipeline.ingest.firecrawl_inbox import FirecrawlInbox
from trapline.pipeline.llm import LanguageModel
from trapline.pipeline.reports.job_results import JobResults
from trapline.pipeline.scrape.mapper import Mapper
from trapline.pipeline.scrape.scraper import Scraper
from trapline.pipeline.scrape.web_search import WebSearch
from trapline.queue.notify import Notifier
from trapline.store.blobs import BlobStore


@dataclass(frozen=True, slots=True)
class Services:
    """Constructed by `app`. An API without a worker has none and answers what needs no work."""

    scraper: Scraper
    mapper: Mapper
    results: JobResults
    feeds: LiveStreams
    notifier: Notifier
    model: LanguageModel
    web_search: WebSearch
    blobs: BlobStore
    inbox: FirecrawlInbox
    browser: BrowserFetcher | None = None
