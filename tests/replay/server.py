"""The replay server: ports 80 and 443 of a loopback address of its own, for every recorded host."""

import asyncio
import os
import random
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.replay.recordings import Recording
from tests.site.certificates import Authority

_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nNot recorded"


class ReplayServer:
    """Answers what was recorded; it closes after a response without a length, as its server did."""

    def __init__(self, recordings: dict[str, Recording], authority: Authority) -> None:
        self.recordings = recordings
        self.authority = authority
        self.address = ""
        self.errors: list[BaseException] = []
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def hosts(self) -> list[str]:
        return sorted({recording.host for recording in self.recordings.values()})

    def env(self) -> dict[str, str]:
        """The environment in which Trapline reaches all hosts."""
        pins = [f"{host}:{port}:{self.address}" for host in self.hosts for port in (80, 443)]
        return {
            "TRAPLINE_RESOLVE": ",".join(pins),
            "TRAPLINE_ALLOW_NETS": "127.0.0.0/8",
            "SSL_CERT_FILE": str(self.authority.file),
        }

    def start(self) -> None:
        self._loop.set_exception_handler(
            lambda _, context: self.errors.append(
                context.get("exception") or RuntimeError(context["message"])
            )
        )
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Transports close in the loop's next turns.
        await asyncio.sleep(0.1)

    async def _listen(self) -> None:
        context = self.authority.context_for(self.hosts)
        while True:
            # Tests in other processes have replay servers as well.
            self.address = f"127.{random.randint(64, 250)}.{os.getpid() % 250}.1"
            try:
                await self._serve(80, None)
                await self._serve(443, context)
            except PermissionError:
                raise
            except OSError:
                continue
            return

    async def _serve(self, port: int, context: ssl.SSLContext | None) -> None:
        scheme = "http" if context is None else "https"

        async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while await self._answer(scheme, reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(attend, self.address, port, ssl=context)
        self._servers.append(server)

    async def _answer(
        self, scheme: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in rest)
        }
        recording = self.recordings.get(f"{scheme}://{headers['host']}{first.split(' ')[1]}")
        writer.write(_UNKNOWN if recording is None else recording.wire)
        await writer.drain()
        return recording is None or _is_framed(recording)


def _is_framed(recording: Recording) -> bool:
    names = {name.lower() for name, _ in recording.response.headers}
    is_closing = "close" in (recording.response.header("connection") or "").lower()
    return bool(names & {"content-length", "transfer-encoding"}) and not is_closing


@contextmanager
def replaying(recordings: dict[str, Recording]) -> Iterator[ReplayServer]:
    authority = Authority()
    server = ReplayServer(recordings, authority)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        authority.close()
    assert server.errors == []


def directory(path: Path) -> list[Path]:
    """The WARC files of a directory."""
    return sorted(path.glob("*.warc.gz")) if path.is_dir() else []
