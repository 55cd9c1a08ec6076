"""A website whose pages are filled by scripts, well-behaved and hostile ones, on the loopback interface."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support import debian
from trapline.fetch.browser.binary import find_browser
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.model import APPROVED, Approval, Approve, Fetched, FetchLimits, FetchRequest
from trapline.rendering import RenderOptions

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_HEAD = "<!doctype html><html><head><title>{name}</title></head><body>"
PAGES = {
    "static": "<h1>Static</h1><p>All of it is in the source.</p>",
    "fetched": """<div id=app></div><script>
        fetch('/data').then(r => r.text()).then(t => { app.innerHTML = `<h1>${t}</h1>` })</script>""",
    "chained": """<div id=app></div><script>
        fetch('/data').then(() => fetch('/data?2')).then(r => r.text())
          .then(t => setTimeout(() => { app.innerHTML = `<p>second ${t}</p>` }, 50))</script>""",
    "shadow": """<x-open><b>light</b></x-open><x-closed></x-closed><script>
        const make = (mode, html) => class extends HTMLElement {
          constructor() { super(); this.attachShadow({mode}).innerHTML = html; } };
        customElements.define('x-open', make('open', '<p>around <slot></slot> it</p>'));
        customElements.define('x-closed', make('closed', '<p>behind closed doors</p>'));</script>""",
    "framed": "<p>outer</p><iframe src=/static></iframe>",
    "moved": "<script>location.href = '/fetched'</script>",
    "circling": "<script>setTimeout(() => { location.href = '/circling?' + Math.random() })</script>",
    "spinning": "<p>before the spin</p><script>setTimeout(() => { for (;;); }, 20)</script>",
    "spinning-at-once": "<p>before</p><script>for (;;);</script>",
    "alerting": """<script>for (let i = 0; i < 30; i++) { alert(i); confirm(i); prompt(i); }
        document.write('<p>after the alerts')</script>""",
    "alerting-for-ever": "<p>shown</p><script>setInterval(() => { for (;;) alert(1); }, 1)</script>",
    "ticking": "<p id=p></p><script>setInterval(() => { p.textContent = Math.random() }, 5)</script>",
    "polling": "<p>polled</p><script>setInterval(() => fetch('/data'), 20)</script>",
    "streaming": "<p>streamed</p><script>new EventSource('/stream'); fetch('/stream')</script>",
    "growing": """<p>grows</p><script>
        const kept = []; for (;;) kept.push(new Uint8Array(2 ** 24).fill(1))</script>""",
    "framing": """<p>frames</p><script>for (let i = 0; i < 1000; i++) {
        const f = document.createElement('iframe'); f.src = '/static?' + i; document.body.append(f); }
        </script>""",
    "opening": "<p>opens</p><script>for (let i = 0; i < 50; i++) window.open('/static?' + i)</script>",
    "printing": """<p>prints</p><script>print(); navigator.vibrate?.(1000);
        navigator.usb?.requestDevice({filters: []}).catch(() => 0);
        Notification?.requestPermission?.();
        navigator.geolocation.getCurrentPosition(() => { document.title = 'located' }, () => 0)
        </script>""",
    "worker": """<p id=p>worker</p><script>navigator.serviceWorker?.register('/worker.js')
        .then(() => { p.textContent = 'registered' }, () => { p.textContent = 'refused' })</script>""",
    "requesting": "<p>asks</p><script>for (let i = 0; i < 3000; i++) fetch('/data?' + i)</script>",
    "large-dom": """<script>document.write('<p>' + 'x'.repeat(1000).concat('</p><p>')
        .repeat(2000))</script>""",
    "long": "<div style='height:100000px;background:linear-gradient(red,blue)'>long</div>",
    "leaving": """<p>leaves</p><script>addEventListener('beforeunload', e => e.preventDefault());
        setTimeout(() => { location.href = '/static' }, 600)</script>""",
    "form": """<form onsubmit="out.textContent = 'sent ' + box.value; return false">
        <input id=box name=box></form><p id=out></p>
        <button class=add onclick="list.append(document.createElement('li'))">add</button>
        <button class=add onclick="list.append(document.createElement('li'))">add</button>
        <ul id=list></ul><button id=late onclick="setTimeout(() => {
          document.body.insertAdjacentHTML('beforeend', '<p class=late>late</p>') }, 300)">late</button>""",
    "endless": """<div id=list></div><script>let n = 0;
        const more = () => { for (let i = 0; i < 20 && n < 100; i++) list.insertAdjacentHTML(
          'beforeend', `<p style="height:80px">item ${++n}</p>`) };
        more(); addEventListener('scroll', () => setTimeout(more, 50))</script>""",
    "agent": """<p id=p></p><script>p.textContent = [navigator.userAgent, navigator.language,
        Intl.DateTimeFormat().resolvedOptions().timeZone, screen.width, 'ontouchstart' in window]
        .join(' | ')</script>""",
    "pictured": "<p>picture</p><img src=/picture.png><script src=/script.js></script>",
}


@dataclass
class ScriptSite:
    """A running site; `hits` counts requests by path, `headers` has those of the last one."""

    url: str = ""
    hits: Counter[str] = field(default_factory=Counter)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ScriptSite"]:
        app = web.Application(middlewares=[self._count])
        app.add_routes(
            [
                web.get("/data", self._data),
                web.get("/stream", self._stream),
                web.get("/redirect", self._redirect),
                web.get("/file.pdf", self._file),
                web.get("/hanging", self._hanging),
                web.get("/cookie", self._cookie),
                web.get("/flood", self._flood),
                web.get("/missing", self._missing),
                web.get("/{name}", self._page),
            ]
        )
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    @contextmanager
    def running_in_thread(self) -> Iterator["ScriptSite"]:
        """Run beside a test that is not asynchronous."""
        started, stop = threading.Event(), asyncio.Event()

        async def run() -> None:
            async with self.running():
                started.set()
                await stop.wait()

        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
        thread.start()
        started.wait(30)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(30)
            loop.close()

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.hits[request.path] += 1
        self.headers[request.path] = dict(request.headers)
        return await handler(request)

    async def _page(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in PAGES:
            return web.Response(status=404, text="<p>nothing here", content_type="text/html")
        text = _HEAD.format(name=name) + PAGES[name]
        return web.Response(text=text, content_type="text/html")

    async def _data(self, _: web.Request) -> web.Response:
        await asyncio.sleep(0.05)
        return web.Response(text="fetched data")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(b"data: more\n\n")
            await asyncio.sleep(0.2)

    async def _redirect(self, _: web.Request) -> web.Response:
        raise web.HTTPMovedPermanently("/fetched")

    async def _file(self, _: web.Request) -> web.Response:
        return web.Response(body=b"%PDF-1.4 a file", content_type="application/pdf")

    async def _hanging(self, _: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    async def _cookie(self, request: web.Request) -> web.Response:
        text = f"<p>{request.headers.get('Cookie', 'none')}</p>"
        response = web.Response(text=text, content_type="text/html")
        response.set_cookie("seen", "yes")
        return response

    async def _flood(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        await response.prepare(request)
        while True:
            await response.write(b"<p>" + b"x" * 2**16 + b"</p>")

    async def _missing(self, _: web.Request) -> web.Response:
        return web.Response(status=404, text="<p>gone</p>", content_type="text/html")


async def approve(_: str) -> Approval:
    return APPROVED


class Renderer:
    """Renders pages of the site."""

    def __init__(self, fetcher: BrowserFetcher, site: ScriptSite) -> None:
        self.fetcher = fetcher
        self.site = site

    async def __call__(
        self,
        path: str,
        *,
        approve: Approve = approve,
        seconds: float = 60.0,
        request: dict[str, object] | None = None,
        **options: object,
    ) -> Fetched:
        url = path if "://" in path else self.site.url + path
        return await self.fetcher.fetch(
            FetchRequest(
                url=url,
                approve=approve,
                limits=FetchLimits(total=seconds),
                render=RenderOptions(reason="a test", **options),
                **(request or {}),
            )
        )


def require_browser() -> None:
    """Install a browser where there is none, or skip the test."""
    if find_browser() is None:
        debian.require("chromium-headless-shell")
