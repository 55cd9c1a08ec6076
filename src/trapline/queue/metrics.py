"""Prometheus metrics of the queue in this process."""

import time
from datetime import UTC, datetime

from prometheus_client import Counter, Gauge, Histogram

from trapline.db.connection import Connection
from trapline.queue.sql import maintenance as queries

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)

TURN = Histogram("trapline_queue_turn_seconds", "One turn: finish and claim.", buckets=_FAST)
FINISH = Histogram("trapline_queue_finish_seconds", "One finishing transaction.", buckets=_FAST)
ENDED = Counter("trapline_tasks_total", "Attempts by outcome.", ["kind", "verdict"])
RESTARTS = Counter(
    "trapline_part_restarts_total", "Parts of the process that failed and were restarted.", ["part"]
)
STALLS = Counter("trapline_task_stalls_total", "Leases that were lost.", ["kind"])
CLAIMED = Gauge("trapline_tasks_in_hand", "Tasks that this process has claimed.")
DEPTH = Gauge("trapline_queue_depth", "Tasks that have not ended, by kind of job.", ["kind"])
AGE = Gauge("trapline_queue_oldest_seconds", "Age of the oldest open job.", ["kind"])


class Stopwatch:
    """Observes how long a block took."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._histogram.observe(time.perf_counter() - self._began)


async def measure(conn: Connection) -> int:
    """Set the gauges of the whole queue; return how many kinds have tasks."""
    depths = await queries.queue_depths(conn)
    DEPTH.clear()
    AGE.clear()
    for row in depths:
        DEPTH.labels(row.kind).set(row.remaining)
        AGE.labels(row.kind).set((datetime.now(UTC) - row.oldest).total_seconds())
    return len(depths)
