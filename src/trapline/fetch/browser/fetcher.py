"""The browser fetcher: a request in, the rendered page out in the shape of an HTTP fetch."""

import asyncio
import time
from types import TracebackType
from typing import Final, Self

from msgspec import structs

from trapline.errors import ExitCode, Unavailable, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.browser import commands as cdp
from trapline.fetch.browser import metrics
from trapline.fetch.browser.actions import ActionFailed, Actions
from trapline.fetch.browser.binary import BrowserMissing, find_browser
from trapline.fetch.browser.blocked_urls import ADVERTISING, PICTURES
from trapline.fetch.browser.capture import Dom, capture_dom, take_screenshot
from trapline.fetch.browser.connection import CommandTimeout, ProtocolError
from trapline.fetch.browser.locations import location_of
from trapline.fetch.browser.page_load import PageLoad
from trapline.fetch.browser.pool import BrowserPool, PoolStatus
from trapline.fetch.browser.tab import Tab, TabConfig
from trapline.fetch.client import Fetcher
from trapline.fetch.outcome import outcome, sentence
from trapline.model import Fetched, FetchRequest
from trapline.rendering import Rendering, RenderOptions, Screenshot, Viewport
from trapline.settings import BrowserSettings

_DESKTOP: Final = Viewport(1280, 800)
_PHONE: Final = Viewport(412, 915)
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
# Kept of a page's time, to read what is there when the rest is over.
_READ_SECONDS: Final = 5.0
_NOT_EXTRA: Final = frozenset(
    {"user-agent", "accept-language", "accept-encoding", "accept", "authorization", "cookie"}
)


class BrowserFetcher:
    """Shows pages in browsers of its own pool; files go to the HTTP fetcher beside it."""

    def __init__(self, settings: BrowserSettings, fetcher: Fetcher) -> None:
        self.settings = settings
        self.http = fetcher
        self.pool = BrowserPool(settings, fetcher.outbound)

    def is_installed(self) -> bool:
        """Whether there is a browser to use."""
        try:
            return find_browser(self.settings.location) is not None
        except BrowserMissing:
            return False

    def status(self) -> PoolStatus:
        return self.pool.status()

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Render a URL. Every end of it is in the result, as with the HTTP fetcher."""
        options = request.render or RenderOptions(reason="requested")
        fetched = await self._render(request, options)
        self.pool.exit_codes[fetched.exit_code] += 1
        metrics.PAGES.labels(fetched.exit_code.name).inc()
        return fetched

    async def _render(self, request: FetchRequest, options: RenderOptions) -> Fetched:
        try:
            async with self.pool.tab(options.shared_context, request.proxy) as tab:
                visit = _Visit(self, tab, request, options)
                fetched = await visit.run()
        except BrowserMissing as error:
            return _failed(request, ExitCode.BROWSER_MISSING, error.message)
        except Unavailable as error:
            return _failed(request, ExitCode.PAGE_CRASHED, error.message)
        except VisitFailed as error:
            return _failed(request, error.code, error.message)
        return await self._download(request, fetched) if visit.is_file else fetched

    async def _download(self, request: FetchRequest, shown: Fetched) -> Fetched:
        """Fetch a file over HTTP, which the browser has only found."""
        fetched = await self.http.fetch(structs.replace(request, url=shown.url, render=None))
        return structs.replace(
            fetched,
            redirects=shown.redirects + fetched.redirects,
            rendering=shown.rendering,
        )

    async def close(self) -> None:
        await self.pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class _Visit:
    """One page in a tab, from the navigation to its capture."""

    def __init__(
        self, fetcher: BrowserFetcher, tab: Tab, request: FetchRequest, options: RenderOptions
    ) -> None:
        self._settings = fetcher.settings
        self._tab = tab
        self._request = request
        self._options = options
        self._limits = request.limits or fetcher.http.limits
        self._headers = http.request_headers(request, fetcher.http.user_agent)
        self._load = PageLoad(
            tab, request, self._limits, self._secrets(), self._settings.page_requests
        )
        self._started = time.monotonic()
        seconds = min(self._limits.total, self._settings.page_seconds)
        self._deadline = self._started + seconds
        self._actions = Actions(self._load, self._limits.decompressed_bytes, self._deadline)
        self._warnings: list[str] = []
        self._screenshot: bytes | None = None
        self._action_error: str | None = None
        self._at_rest = True
        self.is_file = False

    async def run(self) -> Fetched:
        self._load.listen()
        try:
            await self._prepare()
            await self._load.navigate(self._left(reserve=0.0))
            self.is_file = self._load.download is not None or not self._is_html()
            if self._load.download is None:
                await self._use()
            return self._result(None) if self.is_file else self._result(await self._capture())
        except VisitFailed as error:
            return self._failure(error)
        except ProtocolError as error:
            self._tab.broken = True
            return self._failure(VisitFailed(ExitCode.PAGE_CRASHED, str(error)))

    def _left(self, reserve: float = _READ_SECONDS) -> float:
        return max(self._deadline - time.monotonic() - reserve, 0.1)

    # Before the navigation

    async def _prepare(self) -> None:
        limit = self._settings.page_bytes
        self._load.traffic.allow(limit)
        await self._tab.configure(self._config())
        cookies = self._cookies()
        if cookies:
            await self._tab.session.call(cdp.SetCookies(cookies=cookies))

    def _config(self) -> TabConfig:
        request, options = self._request, self._options
        viewport = self._viewport()
        place = location_of(options.country)
        blocked = () if options.shows_pictures else PICTURES
        return TabConfig(
            user_agent=self._headers["User-Agent"],
            accept_language=self._headers["Accept-Language"],
            width=viewport.width,
            height=viewport.height,
            mobile=request.mobile,
            headers=tuple(
                (name, value)
                for name, value in self._headers.items()
                if name.lower() not in _NOT_EXTRA
            ),
            blocked=blocked + (ADVERTISING if options.block_ads else ()),
            verify_tls=request.verify_tls,
            timezone="" if place is None else place.timezone,
            position=None if place is None else (place.latitude, place.longitude),
        )

    def _viewport(self) -> Viewport:
        shots = (self._options.screenshot, *self._options.actions)
        sizes = [shot.viewport for shot in shots if isinstance(shot, Screenshot) and shot.viewport]
        return sizes[0] if sizes else _PHONE if self._request.mobile else _DESKTOP

    def _secrets(self) -> dict[str, str]:
        """Return the headers that only the origin may see which the caller meant."""
        names = {"authorization"}
        return {name: value for name, value in self._headers.items() if name.lower() in names}

    def _cookies(self) -> list[cdp.Cookie]:
        request = self._request
        lines = [self._headers.get("Cookie", "")]
        if request.cookies is not None:
            lines.append(request.cookies.header(request.url))
        pairs = [pair.strip() for line in lines for pair in line.split(";") if "=" in pair]
        named = [pair.partition("=") for pair in pairs]
        return [cdp.Cookie(name.strip(), value.strip(), request.url) for name, _, value in named]

    # On the page

    def _is_html(self) -> bool:
        response = self._load.response
        return response is None or response.mime_type in _HTML

    async def _use(self) -> None:
        """Wait for the page, do what was asked for, and take the picture."""
        options = self._options
        ready = min(self._settings.ready_seconds, self._left())
        self._at_rest = await self._load.settle(ready)
        self._check()
        if not self._at_rest:
            self._warnings.append("The page did not come to rest; this is its state by then.")
            await self._tab.interrupt()
        if options.wait:
            await asyncio.sleep(min(options.wait, self._left()))
        try:
            if options.scroll_to_end:
                async with asyncio.timeout(self._left()):
                    await self._actions.scroll_to_end()
            await self._actions.run(options.actions)
            if options.screenshot is not None:
                self._screenshot, warning = await take_screenshot(self._tab, options.screenshot)
                self._warnings += [] if warning is None else [warning]
        except TimeoutError:
            self._warnings.append("The page had not reached its end in time.")
        except ActionFailed as error:
            self._action_error = str(error)
        self._check()

    def _check(self) -> None:
        if self._load.failure is not None:
            raise self._load.failure
        if self._tab.crashed.is_set():
            raise VisitFailed(ExitCode.PAGE_CRASHED)
        if self._load.traffic.exhausted:
            raise VisitFailed(ExitCode.BODY_TOO_LARGE, "with all that the page loads")

    async def _capture(self) -> Dom:
        """Read the DOM; if a script does not let us, stop it first."""
        self._load.stop()
        limit = self._limits.decompressed_bytes
        for _ in range(2):
            try:
                return await capture_dom(self._tab, self._load.frame_id, limit, _READ_SECONDS)
            except CommandTimeout:
                await self._tab.interrupt()
        self._tab.broken = True
        raise VisitFailed(ExitCode.TOTAL_TIMEOUT, "scripts of the page do not stop")

    # The result

    def _result(self, dom: Dom | None) -> Fetched:
        load = self._load
        body = b"" if dom is None else dom.html.encode("utf-8", "replace")
        status = load.response.status if load.response is not None else 200
        headers = dict(load.headers)
        code = outcome(status, headers, body, conditional=False)
        message = sentence(code, status)
        if self._action_error is not None and code is ExitCode.CONTENT:
            code = ExitCode.ACTION_FAILED
            message = str(VisitFailed(code, self._action_error))
        load.finish(code)
        return Fetched(
            exit_code=code,
            message=message,
            url=load.url,
            requests=tuple(load.requests),
            redirects=tuple(load.redirects),
            status=status,
            headers=load.headers,
            body=body,
            content_type="text/html; charset=utf-8",
            sniffed_type="text/html",
            media_type="text/html",
            wire_bytes=load.wire_bytes,
            remote_address=load.requests[-1].remote_address if load.requests else None,
            proxy=self._request.proxy,
            rendering=self._rendering(),
        )

    def _failure(self, error: VisitFailed) -> Fetched:
        load = self._load
        load.finish(error.code)
        return Fetched(
            exit_code=error.code,
            message=error.message,
            url=load.url,
            requests=tuple(load.requests),
            redirects=tuple(load.redirects),
            rendering=self._rendering(),
        )

    def _rendering(self) -> Rendering:
        activity = self._load.activity
        warnings = [*self._warnings, *self._actions.warnings]
        return Rendering(
            reason=self._options.reason,
            ready="quiet" if self._at_rest else "timeout",
            seconds=time.monotonic() - self._started,
            requests=activity.requests,
            failed_requests=activity.failed,
            wire_bytes=activity.wire_bytes,
            screenshot=self._screenshot,
            actions=self._actions.results,
            action_error=self._action_error,
            warning=" ".join(warnings) or None,
        )


def _failed(request: FetchRequest, code: ExitCode, message: str) -> Fetched:
    return Fetched(exit_code=code, message=message, url=request.url)
