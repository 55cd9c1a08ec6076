"""Readiness of a page: no script or fetch in flight, and a DOM that has not changed for a while."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

# An isolated world shares the DOM with the page, and nothing else: the page sees none of it.
WORLD: Final = "trapline"
OBSERVER: Final = """(() => {
let last = performance.now();
new MutationObserver(() => { last = performance.now(); })
  .observe(document, {subtree: true, childList: true, characterData: true});
globalThis.quietFor = () => performance.now() - last;
})()"""
QUIET_FOR: Final = "globalThis.quietFor ? quietFor() : 1e9"

QUIET_SECONDS: Final = 0.2
# A request that is open for longer is a stream, or has no part in showing the page.
_STREAM_SECONDS: Final = 2.5
# Clocks and tickers never stop; they get so long once the network is quiet.
TICKER_SECONDS: Final = 2.0
# Loads of these types can bring text.
_COUNTED: Final = frozenset({"Document", "Script", "XHR", "Fetch", "Stylesheet"})


@dataclass(slots=True)
class Activity:
    """The requests of a page that are in flight, and when one last began or ended."""

    requests: int = 0
    failed: int = 0
    wire_bytes: int = 0
    last: float = field(default_factory=time.monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _open: dict[str, float] = field(default_factory=dict)

    def begin(self, request_id: str, kind: str) -> None:
        if request_id not in self._open:
            self.requests += 1
        if kind in _COUNTED:
            self._open[request_id] = self.last = time.monotonic()

    def end(self, request_id: str, wire_bytes: float = 0.0, *, failed: bool = False) -> None:
        self.wire_bytes += int(wire_bytes)
        self.failed += failed
        if self._open.pop(request_id, None) is not None:
            self.last = time.monotonic()
            self.changed.set()

    def touch(self) -> None:
        """Note that something happened, such as a new document."""
        self.last = time.monotonic()
        self.changed.set()

    def quiet_in(self, now: float) -> float:
        """Return the seconds until the network counts as quiet; 0 if it is."""
        streams = [since + _STREAM_SECONDS - now for since in self._open.values()]
        busy = [left for left in streams if left > 0]
        return max(0.0, self.last + QUIET_SECONDS - now, *busy)

    async def wait_quiet(self) -> None:
        """Wait until nothing has been in flight for the quiet time."""
        while (left := self.quiet_in(time.monotonic())) > 0:
            self.changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self.changed.wait()
            except TimeoutError:
                continue
