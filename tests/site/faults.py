"""Faults that a test lays over the site while it runs."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.site.message import Headers, Request


@dataclass(slots=True, kw_only=True)
class Fault:
    """What goes wrong, where, and how many times (None: until the next reset)."""

    pattern: str = "*"
    host: str | None = None
    times: int | None = None
    first_byte: float = 0.0
    """Seconds before anything is sent."""
    per_chunk: float = 0.0
    """Seconds before each kilobyte of the answer."""
    status: int | None = None
    """Answer with this instead of the page."""
    headers: Headers = ()
    body: bytes = b"<!doctype html><title>Out of order</title><p>This page is out of order.</p>"
    drop: str | None = None
    """`reset` or `close` the connection, or `hang` on it, instead of an answer."""

    def applies(self, request: Request) -> bool:
        """Tell whether this request is hit, and count it if so."""
        if self.times == 0 or not fnmatchcase(request.target, self.pattern):
            return False
        if self.host is not None and self.host != request.host:
            return False
        if self.times is not None:
            self.times -= 1
        return True
