"""HTTP/1.1 messages: the request as it was read, and an answer with every byte under control."""

from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from time import time
from urllib.parse import parse_qsl

Headers = tuple[tuple[str, str], ...]

_REASONS = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """What came in is not an HTTP/1.x request."""


@dataclass(slots=True)
class Request:
    """One request. `host` is the lower-case name without port; `target` is path and query."""

    method: str
    target: str
    host: str
    authority: str
    headers: dict[str, str]
    scheme: str = "http"
    version: str = "HTTP/1.1"
    proxied: bool = False
    body: bytes = b""
    started: float = field(default_factory=time)

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def origin(self) -> str:
        """What links on an answer to this request are absolute to."""
        return f"{self.scheme}://{self.authority}"

    @property
    def keeps_alive(self) -> bool:
        connection = self.headers.get("connection", "").lower()
        if self.version == "HTTP/1.0":
            return "keep-alive" in connection
        return "close" not in connection

    def accepts(self, coding: str) -> bool:
        return coding in self.headers.get("accept-encoding", "")

    def number(self, name: str, default: float) -> float:
        """Return a number from the query, for behaviours that a test wants larger or smaller."""
        return float(self.query.get(name, default))


@dataclass(frozen=True, slots=True)
class Response:
    """A well-formed answer; what is to be malformed is written to the wire by hand."""

    status: int = 200
    body: bytes = b""
    headers: Headers = ()
    content_type: str | None = "text/html; charset=utf-8"

    def encode(self, *, head_only: bool = False, close: bool = False) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {reason(self.status)}", f"Date: {http_date(time())}"]
        if self.content_type is not None and self.status not in {204, 304}:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.status not in {204, 304}:
            lines.append(f"Content-Length: {len(self.body)}")
        if close:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        return head if head_only or self.status in {204, 304} else head + self.body


def reason(status: int) -> str:
    return _REASONS.get(status, "Unknown")


def http_date(moment: float) -> str:
    """Return the one date format of HTTP, whatever the locale."""
    return formatdate(moment, usegmt=True)


def parse_head(head: bytes, scheme: str = "http") -> Request:
    """Read a request line and its headers. Absolute targets are how clients speak to a proxy."""
    first, *rest = head.decode("latin-1").split("\r\n")
    try:
        method, target, version = first.split(" ")
        headers = {
            name.strip().lower(): value.strip()
            for name, colon, value in (line.partition(":") for line in rest if line)
        }
    except ValueError:
        raise BadRequest(first[:80]) from None
    authority, proxied = headers.get("host", ""), target.startswith("http://")
    if proxied:
        authority, slash, path = target.removeprefix("http://").partition("/")
        target = slash + path or "/"
    return Request(
        method=method,
        target=target,
        host=host_of(authority),
        authority=authority,
        headers=headers,
        scheme=scheme,
        version=version,
        proxied=proxied,
    )


def host_of(authority: str) -> str:
    """Return the name without its port, in lower case, IPv6 brackets kept."""
    if authority.startswith("["):
        return authority.partition("]")[0].lower() + "]"
    return authority.partition(":")[0].lower()
