"""A real receiver of webhooks on loopback, which a test can make fail, hang or go away."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[int, dict[str, Any]], Awaitable[int]]
"""From the count of requests so far and the body of this one to its status."""


@dataclass(frozen=True)
class Received:
    """One request that was answered with 200."""

    body: dict[str, Any]
    raw: bytes
    headers: dict[str, str]


@dataclass
class Receiver:
    """What came in. `answer` decides how each request is answered."""

    port: int = 0
    answer: Answer | None = None
    requests: int = 0
    got: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def names(self) -> list[str]:
        return [received.body["type"] for received in self.got]

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.requests += 1
        body = json.loads(raw)
        status = 200 if self.answer is None else await self.answer(self.requests, body)
        if status == 200:
            self.got.append(Received(body, raw, dict(request.headers)))
        return web.Response(status=status)


@asynccontextmanager
async def receiving(receiver: Receiver | None = None) -> AsyncIterator[Receiver]:
    """Listen while the block runs; a receiver that was up before comes back at its old port."""
    receiver = receiver or Receiver()
    application = web.Application(client_max_size=64 * 2**20)
    application.router.add_post("/hook", receiver.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", receiver.port, reuse_address=True)
    await site.start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()


async def hang(*_: object) -> int:
    """Never answer."""
    await asyncio.sleep(3600)
    return 500
