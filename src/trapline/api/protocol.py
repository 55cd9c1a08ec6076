"""How requests are read off the wire: by httptools, which itself bounds nothing before the body."""

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD: Final = 64 * 1024
"""Bytes of a request's first line and headers; one that has more is refused."""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a request whose head goes on and on, before it fills the memory."""

    _head: int | None = None
    """How much of an unfinished head has come."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is None or self.transport.is_closing():
            return
        self._head += len(data)
        if self._head > MOST_HEAD:
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()
