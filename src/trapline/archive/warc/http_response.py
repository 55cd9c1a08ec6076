"""The HTTP answer inside a WARC record: status, headers, and the body as it was sent."""

import re
from dataclasses import dataclass
from typing import Final

from trapline.errors import InvalidInput

_STATUS: Final = re.compile(rb"HTTP/[0-9.]+ ([0-9]{3})(?: |\r|\n|$)")
_MOST_HEAD: Final = 1 << 16
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,15}")


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer; content codings are still on its body, chunks are not."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return ", ".join(found) if found else None


def parse_response(block: bytes) -> HttpResponse:
    """Take an HTTP response apart; InvalidInput says why it is none."""
    head, body = _split(block)
    found = _STATUS.match(head)
    if found is None:
        raise InvalidInput("The block is no HTTP answer.")
    headers = tuple(_pairs(head))
    answer = HttpResponse(int(found[1]), headers, body)
    coding = (answer.header("transfer-encoding") or "").lower()
    # Some tools store the body whole and leave the header as it was.
    if "chunked" in coding and (whole := _unchunked(body)) is not None:
        return HttpResponse(answer.status, headers, whole)
    return answer


def _split(block: bytes) -> tuple[bytes, bytes]:
    for separator in (b"\r\n\r\n", b"\n\n"):
        at = block.find(separator, 0, _MOST_HEAD)
        if at >= 0:
            return block[:at], block[at + len(separator) :]
    return block[:_MOST_HEAD], b""


def _pairs(head: bytes) -> list[tuple[str, str]]:
    lines = head.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


def _unchunked(body: bytes) -> bytes | None:
    """Put chunks together; None if there are none."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\n", at, at + 100)
        size = _SIZE.match(body, at)
        if end < 0 or size is None:
            return None
        length = int(size[0], 16)
        if length == 0:
            return b"".join(parts)
        if end + 1 + length > len(body):
            return None
        parts.append(body[end + 1 : end + 1 + length])
        at = end + 1 + length
        at += 2 if body.startswith(b"\r\n", at) else 1
