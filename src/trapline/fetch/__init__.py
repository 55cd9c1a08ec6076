"""URL in, bytes and a trace out.

In: a URL with its limits. Out: the final body and every request and redirect on the way.
Owns no table and knows no database.
"""

from trapline.fetch.client import Fetcher
from trapline.fetch.cookies import CookieJar
from trapline.fetch.guard import Guard, UnsafeAddress

__all__ = ["CookieJar", "Fetcher", "Guard", "UnsafeAddress"]
