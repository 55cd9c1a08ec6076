"""The fetch of a page: over HTTP, and in a browser where that is requested or its scripts need one."""

from dataclasses import dataclass, field

from msgspec import structs

from trapline.errors import ExitCode
from trapline.extract.html.charset import decode
from trapline.extract.script_dependence import script_dependence
from trapline.fetch import Fetcher
from trapline.fetch.browser.binary import BrowserMissing
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.frontier.canonical_url import origin_of
from trapline.model import Document, Fetched, FetchRequest
from trapline.pipeline import document_formats
from trapline.pipeline.crawl.job_context import JobContext
from trapline.rendering import BrowserUse, RenderOptions


@dataclass(slots=True)
class PageFetcher:
    """Fetches pages; `browser` is None in processes that must not start one."""

    fetcher: Fetcher
    browser: BrowserFetcher | None = None
    _is_installed: bool | None = field(default=None, init=False)

    async def fetch(self, context: JobContext, request: FetchRequest) -> Fetched:
        """Fetch a page: in a browser where the job's options need one, else over HTTP."""
        reason = context.options.scrape.browser_reason
        if reason is None:
            return await self.fetcher.fetch(request)
        return await self._render(context, request, reason)

    async def render_scripts(
        self, context: JobContext, request: FetchRequest, fetched: Fetched, document: Document
    ) -> Fetched | None:
        """Return the page as a browser shows it, if its text is made by scripts and that helps."""
        if not self._may_render(context, fetched):
            return None
        source = decode(fetched.body, fetched.content_type).text
        reason = script_dependence(source, document.metadata.words)
        if reason is None:
            return None
        rendered = await self._render(context, request, reason)
        return rendered if rendered.exit_code is ExitCode.CONTENT else None

    async def _render(self, context: JobContext, request: FetchRequest, reason: str) -> Fetched:
        if self.browser is None:
            code = ExitCode.BROWSER_MISSING
            return Fetched(exit_code=code, message=BrowserMissing().message, url=request.url)
        options = context.options.scrape
        render = RenderOptions(
            reason=reason,
            wait=options.wait,
            actions=options.actions,
            screenshot=options.screenshot,
            scroll_to_end=options.scroll_to_end,
            block_ads=options.block_ads,
            country=options.country,
            shared_context=_shared(context, request.url),
        )
        return await self.browser.fetch(structs.replace(request, render=render))

    def _may_render(self, context: JobContext, fetched: Fetched) -> bool:
        automatic = context.options.scrape.browser is BrowserUse.AUTO
        if not automatic or fetched.rendering is not None or not document_formats.is_html(fetched):
            return False
        if self._is_installed is None:
            self._is_installed = self.browser is not None and self.browser.is_installed()
        return self._is_installed


def _shared(context: JobContext, url: str) -> tuple[object, ...] | None:
    """Return the key of the browser context: a crawl shares one per host, a scrape has its own."""
    if context.following is None:
        return None
    return (context.job_id, origin_of(url), context.variant)
