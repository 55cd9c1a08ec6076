"""The HTTP server: uvicorn on a port of its own, beside a worker in the same process."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from trapline.api import application
from trapline.api.http_protocol import BoundedProtocol
from trapline.api.principal import is_loopback
from trapline.app.dispatcher import Dispatcher
from trapline.app.worker import run_worker
from trapline.dashboard import application as dashboard
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.db.sql import tenancy as queries
from trapline.errors import SettingsError, Unavailable
from trapline.logs import get_logger
from trapline.settings import ServerSettings, Settings

log = get_logger(__name__)

# Seconds that a stopping server gives the requests under way.
_GRACE_SECONDS = 10


async def serve(settings: Settings, *, on_ready: Callable[[str], object] | None = None) -> None:
    """Answer HTTP until a signal comes, then finish the requests and tasks in progress.

    `on_ready` gets the dashboard's URL once the server answers.
    """
    listener = _bind(settings.server)
    async with Database.open(settings) as database:
        await _refuse_exposure(database, settings)
        async with run_worker(database, settings, name="serve") as running:
            api = application.build(database, settings, running.services, running.recorder)
            app = Dispatcher.of(api, dashboard.build(api), settings.server.path_prefix)
            await _Server(_config(app), on_ready).serve(sockets=[listener])
    log.info("stopped")


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        # Compression would cost more than all else that is done for a watcher, and each connection a
        # window of tens of kilobytes.
        ws_per_message_deflate=False,
    )


class _Server(uvicorn.Server):
    """uvicorn, but it logs its URL once it serves, and exits with status 0 after a signal."""

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[str], object] | None = None
    ) -> None:
        super().__init__(config)
        self.on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            log.info("serving", url=url, dashboard=f"{url}/", docs=f"{url}/docs")
            if self.on_ready is not None:
                await asyncio.to_thread(self.on_ready, url)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal. Unlike the original, do not raise the signal again afterwards."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def _bind(settings: ServerSettings) -> socket.socket:
    """Bind the port before all else: a port in use is the most common mistake."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise Unavailable(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror or error}."
            " Choose another with TRAPLINE_HOST and TRAPLINE_PORT, or --host and --port."
        ) from None
    return listener


async def _refuse_exposure(database: Database, settings: Settings) -> None:
    """Create the default organisation; refuse to serve other machines without keys."""
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
        if is_loopback(settings.server.host) or await queries.any_key(conn):
            return
    raise SettingsError(
        f"TRAPLINE_HOST={settings.server.host} can be reached from other machines, but there is no API"
        " key. Create one first: trapline keys create NAME"
    )
