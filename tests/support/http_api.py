"""The real HTTP application on a real port, over a fresh database, in the test's own loop."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import aiohttp
import pytest
import uvicorn
from starlette.types import ASGIApp

from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.measure import Recorder
from trapline.settings import Settings


class Served(Protocol):
    """Serves the application with some settings."""

    def __call__(
        self, settings: Settings, recorder: Recorder | None = None
    ) -> AbstractAsyncContextManager[aiohttp.ClientSession]: ...


@pytest.fixture
def served(database: Database) -> Served:
    """Serve the application with other settings than the usual ones."""

    @asynccontextmanager
    async def serve(
        settings: Settings, recorder: Recorder | None = None
    ) -> AsyncIterator[aiohttp.ClientSession]:
        async with database.system_tx() as conn:
            await tenancy.ensure_default(conn)
        async with client_of(application.build(database, settings, recorder=recorder)) as client:
            yield client

    return serve


@asynccontextmanager
async def client_of(app: ASGIApp) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve an application on a free port, to one client."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with aiohttp.ClientSession(base) as client:
            yield client
    finally:
        server.should_exit = True
        await running


@pytest.fixture
async def api(served: Served, server_settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the application as a newcomer starts it: on loopback, without keys."""
    async with served(server_settings) as client:
        yield client
