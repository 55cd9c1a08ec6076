"""Origins and fetchers, on the loop that workers use and on the standard one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from ssl import SSLContext

import pytest
import uvloop

from tests.integration.fetch.origin import Answer, Client, Origin, Serve, client


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Transports of the two loops differ in how they report faults."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start origins; they are stopped when the test ends."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def start(
        answers: dict[str, Answer] | None = None,
        *,
        host: str = "127.0.0.1",
        tls: SSLContext | None = None,
    ) -> Origin:
        origin = Origin(host, answers=answers or {}, scheme="https" if tls else "http")

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(origin.serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, host, 0, ssl=tls)
        origin.port = server.sockets[0].getsockname()[1]
        servers.append(server)
        return origin

    yield start
    for server in servers:
        server.close()
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def fetch() -> AsyncIterator[Client]:
    """A fetcher that may reach loopback."""
    async with client() as opened:
        yield opened
