"""HTTP POST to webhook receivers: the guard of fetches, no redirects."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from trapline.fetch.connector import GuardedConnector
from trapline.fetch.guard import Guard, UnsafeAddress
from trapline.fetch.resolver import GuardedResolver, Pins, SystemLookup
from trapline.settings import FetchSettings, WebhookSettings

_ALL_NETWORKS: Final = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))
_CONNECTIONS: Final = 512
# Responses are read up to this size, so that the connection can be reused.
_ANSWER_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class PostResult:
    """The result of a POST: a status, or an error. `unsafe`: the guard has refused the address."""

    status: int | None = None
    error: str | None = None
    unsafe: bool = False


class Poster:
    """Posts to webhook receivers. Construct it inside the running loop, and close it."""

    def __init__(
        self, settings: FetchSettings, webhooks: WebhookSettings, *, seconds: float = 10.0
    ) -> None:
        allowed = _ALL_NETWORKS if webhooks.allow_local else settings.allow_nets
        guard = Guard(allowed)
        self._lookup = SystemLookup()
        resolver = GuardedResolver(guard, Pins(settings.resolve), self._lookup)
        self._session = aiohttp.ClientSession(
            connector=GuardedConnector(guard, resolver, _CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=seconds),
            headers={"User-Agent": settings.user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> PostResult:
        """Send a body; the result has every outcome."""
        try:
            async with self._session.post(
                URL(url), data=body, headers=headers, allow_redirects=False
            ) as answer:
                await answer.content.read(_ANSWER_BYTES)
                return PostResult(answer.status)
        except UnsafeAddress as error:
            return PostResult(error=_unsafe(error), unsafe=True)
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, UnsafeAddress):
                return PostResult(error=_unsafe(error.os_error), unsafe=True)
            return PostResult(error=f"The receiver cannot be reached: {error.strerror or error}.")
        except TimeoutError:
            return PostResult(error="The receiver did not answer in time.")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return PostResult(error=f"The receiver cannot be reached: {error}.")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()
        self._lookup.close()


def _unsafe(error: UnsafeAddress) -> str:
    return (
        f"The receiver is at a private or reserved address ({error});"
        " TRAPLINE_ALLOW_LOCAL_WEBHOOKS or TRAPLINE_ALLOW_NETS opens it."
    )
