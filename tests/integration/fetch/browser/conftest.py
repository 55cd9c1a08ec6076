"""One browser and one site for all tests of a module."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest_asyncio
import uvloop

from tests.support.script_site import Renderer, ScriptSite, require_browser
from trapline.fetch import Fetcher
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.settings import BrowserSettings, FetchSettings


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[ScriptSite]:
    async with ScriptSite().running() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fetcher() -> AsyncIterator[BrowserFetcher]:
    require_browser()
    settings = BrowserSettings(ready_seconds=4.0, page_memory_mb=600, page_bytes=2**23)
    async with (
        Fetcher(FetchSettings(allow_nets=("127.0.0.1/32",))) as http,
        BrowserFetcher(settings, http) as running,
    ):
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def render(fetcher: BrowserFetcher, site: ScriptSite) -> Renderer:
    return Renderer(fetcher, site)
