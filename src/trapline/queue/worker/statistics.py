"""Statistics of this process by kind and minute: written every few seconds, rolled up by maintenance."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import asyncpg

from trapline.db.connection import LOST
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.queue import metrics
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import maintenance as queries

log = get_logger(__name__)

FLUSH_EVERY: Final = 10.0


@dataclass(slots=True)
class Statistics:
    """Counts attempts by kind, minute and outcome."""

    database: Database
    _counts: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    _flushed: float = field(default_factory=time.monotonic)

    def count(self, kind: str, verdict: TaskOutcome, seconds: float) -> None:
        at = (kind, int(time.time() // 60))
        row = self._counts.get(at)
        if row is None:
            row = self._counts[at] = [0.0] * (len(TaskOutcome) + 1)
        row[verdict] += 1
        row[-1] += seconds

    async def flush_sometimes(self) -> None:
        if time.monotonic() - self._flushed > FLUSH_EVERY:
            await self.flush()

    async def flush(self) -> None:
        """Write the counts as deltas. They are lost with the process: statistics, not accounts."""
        self._flushed = time.monotonic()
        counts, self._counts = self._counts, {}
        if not counts:
            return
        for (kind, _), row in counts.items():
            for verdict in TaskOutcome:
                if row[verdict]:
                    metrics.ENDED.labels(kind, verdict.name.lower()).inc(row[verdict])
        try:
            await self._write(counts)
        except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
            log.warning("statistics were not written", error=str(error))

    async def _write(self, counts: dict[tuple[str, int], list[float]]) -> None:
        def column(verdict: TaskOutcome) -> list[int]:
            return [int(row[verdict]) for row in counts.values()]

        async with self.database.system_tx() as conn:
            await queries.add_statistics(
                conn,
                kinds=[kind for kind, _ in counts],
                minutes=[datetime.fromtimestamp(minute * 60, UTC) for _, minute in counts],
                completed=column(TaskOutcome.COMPLETED),
                failed=column(TaskOutcome.FAILED),
                skipped=column(TaskOutcome.SKIPPED),
                retried=column(TaskOutcome.RETRY),
                stalled=column(TaskOutcome.STALLED),
                seconds=[row[-1] for row in counts.values()],
            )
