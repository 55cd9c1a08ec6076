"""The cookies of one job, kept in memory."""

from collections.abc import Sequence

import aiohttp
from yarl import URL

# The limit of RFC 6265 for browsers. The jar bounds the number of cookies.
_MOST_BYTES = 4096


class CookieJar:
    """Keeps what servers set, and says what to send back to whom. Make it inside the loop."""

    def __init__(self) -> None:
        # Sites on bare addresses have cookies, too.
        self._jar = aiohttp.CookieJar(unsafe=True)

    def header(self, url: str) -> str:
        if not len(self._jar):
            return ""
        found = self._jar.filter_cookies(URL(url, encoded=True))
        return "; ".join(f"{name}={morsel.coded_value}" for name, morsel in found.items())

    def remember(self, url: str, set_cookie: Sequence[str]) -> None:
        kept = [line for line in set_cookie if len(line) <= _MOST_BYTES]
        self._jar.update_cookies_from_headers(kept, URL(url, encoded=True))
