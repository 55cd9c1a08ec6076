"""The contenders of bench-crawl, each a program of its own: python -m benchmarks.crawlers.NAME URL OUT.

Each crawls every HTML page that links lead to below URL, at most 64 requests at once, and prints one
line of JSON: pages, seconds, CPU seconds and peak memory of its own process.
"""

import json
import resource
import time
from types import TracebackType
from typing import Self

AT_ONCE = 64


class Meter:
    """Times the block that crawls: starting Python and importing libraries is not crawling."""

    pages = 0
    seconds = 0.0
    cpu = 0.0

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seconds = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu

    def tell(self, **more: object) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        figures = {"pages": self.pages, "seconds": self.seconds, "cpu": self.cpu, "peak": peak}
        print(json.dumps(figures | more))
