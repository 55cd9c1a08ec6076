"""An origin server that says byte for byte what a test wants, and a fetcher that may reach it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.support.settings import make_settings
from trapline.errors import ExitCode
from trapline.fetch import Fetcher
from trapline.model import APPROVED, Approval, Fetched, FetchLimits, FetchRequest

Perform = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answer = bytes | Perform
Listen = Callable[..., Awaitable[int]]
Serve = Callable[..., Awaitable["Origin"]]

_HURRIES: Final[dict[ExitCode, dict[str, float]]] = {
    ExitCode.CONNECT_TIMEOUT: {"connect": 0.3},
    ExitCode.FIRST_BYTE_TIMEOUT: {"first_byte": 0.5},
    ExitCode.TOTAL_TIMEOUT: {"total": 1.0},
}


def hurried(limits: FetchLimits, code: ExitCode) -> FetchLimits:
    """With a short limit for what should run out of time, and for nothing else.

    A busy machine may stall for a second anywhere, and whatever is short then ends the visit.
    """
    return replace(limits, **_HURRIES.get(code, {}))


def page(body: bytes = b"<p>hello</p>", status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole answer; `_` in a header's name stands for `-`."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    if "Content_Type" not in headers:
        lines.append("Content-Type: text/html")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(to: str, status: int = 302, **headers: str) -> bytes:
    return page(b"moved", f"{status} Moved", Location=to, **headers)


@dataclass
class Origin:
    """What it answers by path, what it was asked, and who is still connected."""

    host: str
    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"http://{host or self.host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [head.split(" ", 2)[1] for head in self.asked]

    def sent(self, name: str, at: int = -1) -> str | None:
        """Return a header of a request."""
        lines = self.asked[at].split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if line)
        return next((v.strip() for k, _, v in pairs if k.lower() == name.lower()), None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            await self._tell()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append(head)
        await self._tell()
        answer = self.answers.get(self.paths[-1].partition("?")[0], page(status="404 Not Found"))
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return True
        await answer(reader, writer)
        return False

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, connected: int, asked: int = 0) -> None:
        """Wait until so many clients are connected and have asked; the test's timeout is the limit."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.open == connected and len(self.asked) >= asked)


async def approve(_url: str) -> Approval:
    return APPROVED


class Client:
    """A fetcher with the settings of a test."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher

    async def __call__(self, url: str, **fields: Any) -> Fetched:
        return await self.fetcher.fetch(FetchRequest(**{"url": url, "approve": approve} | fields))


@asynccontextmanager
async def client(**fields: Any) -> AsyncIterator[Client]:
    """Open a fetcher. `lookup` and `tls` are its own, the rest are settings."""
    own = {name: fields.pop(name) for name in ("lookup", "tls") if name in fields}
    settings = make_settings(**{"allow_nets": "127.0.0.0/8"} | fields)
    async with Fetcher(settings.fetch, **own) as fetcher:
        yield Client(fetcher)
