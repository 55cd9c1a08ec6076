"""HTTP client of the crawler: redirects, time-outs, limits, SSRF guard.

In: a URL with its limits. Out: the final body, and a trace of every request and redirect.
Owns no table and knows no database.
"""

from trapline.fetch.client import Fetcher
from trapline.fetch.cookies import CookieJar
from trapline.fetch.guard import Guard, UnsafeAddress

__all__ = ["CookieJar", "Fetcher", "Guard", "UnsafeAddress"]
