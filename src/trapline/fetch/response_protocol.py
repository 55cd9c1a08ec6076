"""Response protocol of a connection: aiohttp's, but as lenient as browsers are.

A response with both Transfer-Encoding and Content-Length is read by the former, and a repeated
Content-Length counts once (RFC 9112, 6.3); a space before a colon is ignored. aiohttp's parser refuses
all three, which servers and proxies send.
"""

import re
from typing import Any, Final

from aiohttp.client_proto import ResponseHandler

_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[^\r\n]*", re.IGNORECASE)
_SPACE_BEFORE_COLON: Final = re.compile(rb"(\r\n[!-9;-~]+)[ \t]+:")


class LenientProtocol(ResponseHandler):
    """Repairs the head of a response before it is parsed."""

    _is_at_head = False

    def set_response_params(self, *args: Any, **kwargs: Any) -> None:
        super().set_response_params(*args, **kwargs)
        self._is_at_head = True

    def data_received(self, data: bytes) -> None:
        if self._is_at_head:
            self._is_at_head = False
            data = repaired(data)
        super().data_received(data)


def repaired(data: bytes) -> bytes:
    """Repair the head that data begins with; data is returned as it is where there is nothing to do."""
    end = data.find(_END)
    if end < 0:
        return data
    head = data[:end]
    if b" :" in head:
        head = _SPACE_BEFORE_COLON.sub(rb"\1:", head)
    lower = head.lower()
    if b"\r\ntransfer-encoding:" in lower:
        head = _LENGTH.sub(b"", head)
    elif lower.count(b"\r\ncontent-length:") > 1:
        head = _with_one_length(head)
    return data if len(head) == end else head + data[end:]


def _with_one_length(head: bytes) -> bytes:
    """Keep the first length if all are the same; lengths that differ are an error of the server."""
    lines: list[bytes] = _LENGTH.findall(head)
    if len({line.partition(b":")[2].strip() for line in lines}) > 1:
        return head
    return _LENGTH.sub(b"", head) + lines[0]
