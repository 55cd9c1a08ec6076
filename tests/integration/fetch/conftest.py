"""Origins and fetchers, on the loop that workers use and on the standard one."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from tests.support.origin_server import Answer, Client, Listen, Origin, Perform, Serve, client


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Transports of the two loops differ in how they report faults."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Accept connections and hand them to a function, on a port that is returned."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def start(perform: Perform, host: str = "127.0.0.1") -> int:
        async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await perform(reader, writer)
            finally:
                writer.close()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(attend(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, host, 0)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        server.close()
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def serve(listen: Listen) -> Serve:
    """Start origins; they are stopped when the test ends."""

    async def start(
        answers: dict[str, Answer] | None = None,
        *,
        host: str = "127.0.0.1",
    ) -> Origin:
        origin = Origin(host, answers=answers or {})
        origin.port = await listen(origin.serve, host)
        return origin

    return start


@pytest.fixture
async def fetch() -> AsyncIterator[Client]:
    """A fetcher that may reach loopback."""
    async with client() as opened:
        yield opened
