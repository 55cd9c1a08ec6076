"""Around every request: what becomes of it when PostgreSQL goes away in its middle.

Before its first statement a transaction finds a live connection by itself (`db.pool`). But a server
that is killed leaves backends that still answer for a moment, so a request can lose its connection
later too. A read is then simply done again. What may have written something is not: its caller is
told, and decides.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trapline.db.connection import CUT_OFF
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger

_PATIENCE: Final = 20.0
_PAUSE: Final = 0.1
_READS: Final = frozenset({"GET", "HEAD"})

log = get_logger(__name__)


class ReadAgain:
    """ASGI middleware: repeat reads whose connection to PostgreSQL broke; refuse the rest with 503."""

    def __init__(
        self, app: ASGIApp, refuse: Callable[[Scope, DatabaseUnavailable], Response]
    ) -> None:
        self.app = app
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False
        asked = dict(scope)

        async def send_noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            try:
                await self.app(scope, receive, send_noted)
            except CUT_OFF as error:
                if begun:
                    raise
                log.warning("PostgreSQL went away in a request", exc_info=error)
                late = asyncio.get_running_loop().time() > deadline
                if late or scope["method"] not in _READS:
                    await self.refuse(scope, _unknown(error))(scope, receive, send)
                    return
                await asyncio.sleep(_PAUSE)
                # The router wrote into the scope what it found; each attempt begins as the first did.
                scope.clear()
                scope.update(asked)
            else:
                return


def _unknown(error: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "The connection to PostgreSQL was lost; whether the request was carried out is not known:"
        f" {error}"
    )
