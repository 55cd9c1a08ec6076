"""Middleware that retries reads whose connection to PostgreSQL was lost.

Before its first statement a transaction finds a live connection by itself (`db.pool`). But a killed
server leaves backends that still answer for a moment, so a request can lose its connection later too.
A read is then retried. A request that may have written is not: the caller gets a 503 and decides.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trapline.db.connection import CUT_OFF
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger

_GIVE_UP_SECONDS: Final = 20.0
_PAUSE_SECONDS: Final = 0.1
_READS: Final = frozenset({"GET", "HEAD"})

log = get_logger(__name__)


class ReadRetry:
    """ASGI middleware: retry GET and HEAD; answer 503 to the rest."""

    def __init__(
        self, app: ASGIApp, refuse: Callable[[Scope, DatabaseUnavailable], Response]
    ) -> None:
        self.app = app
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        response_started = False
        original = dict(scope)

        async def send_noting(message: Message) -> None:
            nonlocal response_started
            response_started = True
            await send(message)

        deadline = asyncio.get_running_loop().time() + _GIVE_UP_SECONDS
        while True:
            try:
                await self.app(scope, receive, send_noting)
            except CUT_OFF as error:
                if response_started:
                    raise
                log.warning("a request lost its connection to PostgreSQL", exc_info=error)
                late = asyncio.get_running_loop().time() > deadline
                if late or scope["method"] not in _READS:
                    await self.refuse(scope, _unknown(error))(scope, receive, send)
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
                # The router writes into the scope; each attempt starts from the original.
                scope.clear()
                scope.update(original)
            else:
                return


def _unknown(error: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "The connection to PostgreSQL was lost; whether the request was carried out is not known:"
        f" {error}"
    )
