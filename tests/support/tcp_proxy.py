"""A way to PostgreSQL that a test can close and open again, as if the server were away."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit


@dataclass
class PostgresProxy:
    """Listens at a Unix socket and passes everything on to the server's own, while it is open."""

    target: str
    place: str
    dsn: str
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._pass, self.place)

    async def close(self) -> None:
        """Take no connection any more, and break those that there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        Path(self.place).unlink(missing_ok=True)
        for writer in list(self._open):
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self.target)
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            self._open -= {writer, far_writer}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def postgres_proxy(dsn: str) -> AsyncIterator[PostgresProxy]:
    """Open a postgres_proxy to the server of a URL; its own URL is `dsn`."""
    parts = urlsplit(dsn)
    asked = parse_qs(parts.query)
    port = asked["port"][0]
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        name = f".s.PGSQL.{port}"
        way = PostgresProxy(
            f"{asked['host'][0]}/{name}",
            f"{folder}/{name}",
            f"{dsn.partition('?')[0]}?host={quote(folder)}&port={port}",
        )
        await way.open()
        try:
            yield way
        finally:
            await way.close()
