"""Servers on loopback that speak what Trapline asks: a language model's protocol, and SearXNG's."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Say = Callable[[dict[str, Any]], str]
"""From a chat request to what the model says."""


@dataclass
class LlmServer:
    """What was asked, and what is answered."""

    url: str = ""
    say: Say = lambda _: "{}"
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    searched: list[dict[str, list[str]]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def answering() -> Iterator[LlmServer]:
    """Serve both protocols while the block runs."""
    llm_server = LlmServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            llm_server.asked.append(request)
            llm_server.keys.append(self.headers.get("Authorization"))
            if llm_server.status != 200:
                self._answer(llm_server.status, {"error": {"message": "no such model"}})
                return
            said = llm_server.say(request)
            self._answer(
                200,
                {
                    "choices": [{"message": {"content": said}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 20},
                },
            )

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            llm_server.searched.append(query)
            first = query["pageno"] == ["1"]
            self._answer(llm_server.status, {"results": llm_server.results if first else []})

        def _answer(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    llm_server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield llm_server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
