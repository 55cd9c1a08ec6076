"""Pool of browsers: a few processes, bounded tabs, contexts that are fresh or shared by a key.

A slot belongs to the pool and not to events of the browser: whatever a page does, its tab is taken
away within seconds (close, dispose of the context, crash the renderer, kill the process group).
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psutil
import structlog
from msgspec import Struct

from trapline.errors import Unavailable
from trapline.fetch.browser import commands as cdp
from trapline.fetch.browser import metrics
from trapline.fetch.browser.binary import require_browser
from trapline.fetch.browser.connection import ProtocolError
from trapline.fetch.browser.memory_pressure import Pressure, memory_pressure
from trapline.fetch.browser.process import BrowserProcess, launch, sweep
from trapline.fetch.browser.socks_proxy import BYPASS_NOTHING, Outbound, SocksProxy, Traffic
from trapline.fetch.browser.tab import Tab
from trapline.settings import BrowserSettings

log = structlog.get_logger()

_TAB_PAGES: Final = 50
_STEP_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 1.0
_PING_SECONDS: Final = 5.0
_MEASURE_EVERY: Final = 10
_IDLE_CONTEXT_SECONDS: Final = 30.0
_IDLE_PROCESS_SECONDS: Final = 120.0
_RETIRE_SECONDS: Final = 90.0
_PRESSURE_POLL: Final = 0.25

Outbounds = Callable[[str | None], Outbound]
"""Returns the way out for a proxy that a request names."""


class PoolStatus(Struct, frozen=True, kw_only=True):
    """The state of the pool in one process of ours."""

    browser: str | None
    """Name and version, once one runs."""
    sandboxed: bool | None = None
    active_browsers: int = 0
    active_contexts: int = 0
    available_contexts: int = 0
    """Slots that are free."""
    memory_mb: int = 0
    queued: int = 0
    pages: int = 0
    crashes: int = 0
    restarts: int = 0
    exit_codes: dict[int, int] = {}


@dataclass(slots=True, eq=False)
class PooledBrowser:
    """A process of the pool with its contexts and what it has done."""

    process: BrowserProcess
    contexts: "set[BrowserContext]" = field(default_factory=set)
    pages: int = 0
    active: int = 0
    last_used: float = field(default_factory=time.monotonic)
    retiring_since: float | None = None
    memory: int = 0


@dataclass(slots=True, eq=False)
class BrowserContext:
    """An isolated profile in a browser, with its own proxy; it lives in memory only."""

    browser: PooledBrowser
    id: str
    key: Hashable | None
    proxy: SocksProxy
    idle: list[Tab] = field(default_factory=list)
    active: int = 0
    last_used: float = field(default_factory=time.monotonic)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a command whose failure concerns nobody: the tab it was for is gone."""
        task = asyncio.get_running_loop().create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class BrowserPool:
    """Runs browsers when they are needed. Make it inside the loop, and close it."""

    def __init__(self, settings: BrowserSettings, outbounds: Outbounds) -> None:
        self._settings = settings
        self._outbounds = outbounds
        self._slots = asyncio.Semaphore(settings.tabs)
        self._lock = asyncio.Lock()
        self._browsers: list[PooledBrowser] = []
        self._shared: dict[Hashable, BrowserContext] = {}
        self._closed_proxy: SocksProxy | None = None
        self._closed_url = ""
        self._watcher: asyncio.Task[None] | None = None
        self._waiting = 0
        self._pages = 0
        self._crashes = 0
        self._restarts = 0
        self._swept = False
        self.exit_codes: Counter[int] = Counter()

    @asynccontextmanager
    async def tab(self, key: Hashable | None, proxy: str | None) -> AsyncIterator[Tab]:
        """Wait for a slot and yield a tab: in a fresh context, or in the one that the key shares."""
        require_browser(self._settings.location)
        self._waiting += 1
        try:
            with metrics.QUEUE.track_inprogress():
                await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            await self._admit()
            tab = await self._open(key, proxy)
            try:
                with metrics.TABS.track_inprogress():
                    yield tab
            finally:
                await asyncio.shield(self._release(tab))
        finally:
            self._slots.release()

    def status(self) -> PoolStatus:
        processes = [browser.process for browser in self._browsers]
        return PoolStatus(
            browser=processes[0].version.product if processes else None,
            sandboxed=processes[0].sandboxed if processes else None,
            active_browsers=len(processes),
            active_contexts=sum(len(browser.contexts) for browser in self._browsers),
            available_contexts=self._settings.tabs - sum(b.active for b in self._browsers),
            memory_mb=sum(browser.memory for browser in self._browsers) >> 20,
            queued=self._waiting,
            pages=self._pages,
            crashes=self._crashes,
            restarts=self._restarts,
            exit_codes=dict(self.exit_codes),
        )

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher
        await asyncio.gather(*(self._end(browser) for browser in list(self._browsers)))
        if self._closed_proxy is not None:
            self._closed_proxy.close()

    # Opening

    async def _admit(self) -> None:
        """Hold new pages back while memory is short and others are at work."""
        while any(browser.active for browser in self._browsers):
            if memory_pressure() < Pressure.NO_NEW_CONTEXTS:
                return
            await asyncio.sleep(_PRESSURE_POLL)

    async def _open(self, key: Hashable | None, proxy: str | None) -> Tab:
        context = await self._context(key, proxy)
        context.active += 1
        context.browser.active += 1
        try:
            while context.idle:
                tab = context.idle.pop()
                if not tab.broken:
                    return tab
            return await self._new_tab(context)
        except BaseException:
            await asyncio.shield(self._leave(context, dispose=True))
            raise

    async def _context(self, key: Hashable | None, proxy: str | None) -> BrowserContext:
        if key is None:
            async with self._lock:
                browser = await self._browser()
                browser.active += 1
            try:
                return await self._new_context(browser, None, proxy)
            finally:
                browser.active -= 1
        async with self._lock:
            shared = self._shared.get((key, proxy))
            if shared is not None and _usable(shared.browser):
                return shared
            browser = await self._browser()
            context = await self._new_context(browser, (key, proxy), proxy)
            self._shared[key, proxy] = context
            return context

    async def _browser(self) -> PooledBrowser:
        """Return the least busy browser; start one while there are fewer than allowed."""
        usable = [browser for browser in self._browsers if _usable(browser)]
        if usable and (len(usable) >= self._settings.processes or not usable[-1].active):
            return min(usable, key=lambda browser: browser.active)
        if not self._swept:
            self._swept = True
            await asyncio.to_thread(sweep)
        if self._closed_proxy is None:
            # What belongs to no context of ours reaches nothing.
            self._closed_proxy = SocksProxy(self._outbounds(None), Traffic(limit=0), 1.0)
            self._closed_url = await self._closed_proxy.start()
        binary = require_browser(self._settings.location)
        process = await launch(binary, self._closed_url, user=self._settings.user)
        browser = PooledBrowser(process)
        self._browsers.append(browser)
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        return browser

    async def _new_context(
        self, browser: PooledBrowser, key: Hashable | None, proxy: str | None
    ) -> BrowserContext:
        listener = SocksProxy(
            self._outbounds(proxy), Traffic(limit=self._settings.page_bytes), 10.0
        )
        root = browser.process.connection.browser
        try:
            url = await listener.start()
            made = await root.call(
                cdp.CreateContext(
                    dispose_on_detach=True,
                    proxy_server=url,
                    proxy_bypass_list=BYPASS_NOTHING,
                )
            )
            context = BrowserContext(browser, made.browser_context_id, key, listener)
            browser.contexts.add(context)
            await root.call(cdp.SetDownloadBehavior(behavior="deny", browser_context_id=context.id))
        except ProtocolError as error:
            listener.close()
            raise Unavailable(f"The browser does not answer: {error}") from error
        return context

    async def _new_tab(self, context: BrowserContext) -> Tab:
        connection = context.browser.process.connection
        try:
            target = await connection.browser.call(
                cdp.CreateTarget(url="about:blank", browser_context_id=context.id)
            )
            attached = await connection.browser.call(
                cdp.AttachToTarget(target_id=target.target_id, flatten=True)
            )
            tab = Tab(context, target.target_id, connection.attach(attached.session_id))
            await tab.set_up()
        except ProtocolError as error:
            raise Unavailable(f"The browser does not answer: {error}") from error
        return tab

    # Releasing

    async def _release(self, tab: Tab) -> None:
        context, browser = tab.context, tab.context.browser
        tab.pages += 1
        browser.pages += 1
        self._pages += 1
        self._crashes += tab.crashed.is_set()
        reusable = context.key is not None and not tab.broken and tab.pages < _TAB_PAGES
        if reusable and _usable(browser):
            context.idle.append(tab)
        elif context.key is not None and browser.process.alive:
            await self._close_tab(tab)
        await self._leave(context, dispose=context.key is None)
        if browser.pages >= self._settings.process_pages:
            self._retire(browser)

    async def _leave(self, context: BrowserContext, *, dispose: bool) -> None:
        browser = context.browser
        context.active -= 1
        browser.active -= 1
        context.last_used = browser.last_used = time.monotonic()
        if dispose and context.active == 0:
            await self._dispose(context)
        if not browser.process.alive:
            await self._end(browser, died=True)

    async def _close_tab(self, tab: Tab) -> None:
        connection = tab.session.connection
        try:
            await connection.browser.call(cdp.CloseTarget(target_id=tab.target_id), _STEP_SECONDS)
        except ProtocolError:
            await self._dispose(tab.context)
        connection.detach(tab.session.id)

    async def _dispose(self, context: BrowserContext) -> None:
        """Dispose of a context with its tabs; kill the browser that does not."""
        browser = context.browser
        if self._shared.get(context.key) is context:
            del self._shared[context.key]
        browser.contexts.discard(context)
        context.proxy.close()
        if not browser.process.alive:
            return
        root = browser.process.connection.browser
        try:
            await root.call(cdp.DisposeContext(browser_context_id=context.id), _STEP_SECONDS)
        except ProtocolError:
            await self._crash(context)

    async def _crash(self, context: BrowserContext) -> None:
        """Crash the renderers of a context that cannot be disposed of; then kill the process."""
        browser = context.browser
        root = browser.process.connection.browser
        for tab in context.idle:
            await _quietly(tab.session.call(cdp.CrashPage(), _STEP_SECONDS))
        try:
            await root.call(cdp.DisposeContext(browser_context_id=context.id), _STEP_SECONDS)
        except ProtocolError:
            if browser.process.alive:
                log.warning("browser.killed", reason="a context could not be closed")
                await self._end(browser, died=True)

    def _retire(self, browser: PooledBrowser) -> None:
        """Let a browser finish its pages and give it no new ones."""
        if browser.retiring_since is None:
            browser.retiring_since = time.monotonic()

    async def _end(self, browser: PooledBrowser, *, died: bool = False) -> None:
        if browser in self._browsers:
            self._browsers.remove(browser)
            if died:
                self._restarts += 1
                metrics.RESTARTS.inc()
        for context in list(browser.contexts):
            context.proxy.close()
            if self._shared.get(context.key) is context:
                del self._shared[context.key]
        browser.contexts.clear()
        await browser.process.close()

    # Watching

    async def _watch(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            turn += 1
            for browser in list(self._browsers):
                with suppress(psutil.Error):
                    await self._inspect(browser, measure=turn % _MEASURE_EVERY == 0)
            await self._relieve()

    async def _inspect(self, browser: PooledBrowser, *, measure: bool) -> None:
        """End a browser that is dead, over its time or idle; kill renderers that are too large."""
        now = time.monotonic()
        await asyncio.to_thread(self._kill_large_renderers, browser)
        if measure:
            browser.memory = await asyncio.to_thread(browser.process.memory)
            await self._ping(browser)
        if now - browser.process.started > self._settings.process_seconds:
            self._retire(browser)
        if browser.memory > self._settings.process_memory_mb << 20:
            self._retire(browser)
        await self._close_idle(browser, now - _IDLE_CONTEXT_SECONDS)
        retiring = browser.retiring_since
        overdue = retiring is not None and now - retiring > _RETIRE_SECONDS
        idle = now - browser.last_used > _IDLE_PROCESS_SECONDS or retiring is not None
        if overdue or (idle and not browser.active) or not browser.process.alive:
            await self._end(browser, died=overdue or not idle)

    async def _ping(self, browser: PooledBrowser) -> None:
        """Retire a browser that has become slow."""
        try:
            await browser.process.connection.browser.call(cdp.GetVersion(), _PING_SECONDS)
        except ProtocolError:
            self._retire(browser)

    def _kill_large_renderers(self, browser: PooledBrowser) -> None:
        limit = self._settings.page_memory_mb << 20
        for process in browser.process.processes()[1:]:
            with suppress(psutil.Error):
                if process.memory_info().rss > limit:
                    log.warning("browser.renderer_killed", megabytes=limit >> 20)
                    os.kill(process.pid, signal.SIGKILL)

    async def _close_idle(self, browser: PooledBrowser, before: float) -> None:
        for context in list(browser.contexts):
            if context.active == 0 and context.key is not None and context.last_used < before:
                await self._dispose(context)

    async def _relieve(self) -> None:
        """Give memory back when it is short."""
        pressure = memory_pressure()
        if pressure < Pressure.CLOSE_IDLE:
            return
        for browser in list(self._browsers):
            await self._close_idle(browser, time.monotonic())
        if pressure >= Pressure.RESTART and self._browsers:
            largest = max(self._browsers, key=lambda browser: browser.process.memory())
            log.warning("browser.restarted", reason="memory")
            await self._end(largest, died=True)


def _usable(browser: PooledBrowser) -> bool:
    return browser.process.alive and browser.retiring_since is None


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    with suppress(ProtocolError):
        await work
