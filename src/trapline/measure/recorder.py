"""Takes measurements in memory and writes them a batch at a time, beside the work they are about."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import asyncpg
from prometheus_client import Counter

from trapline import logs
from trapline.db.connection import EXHAUSTED, LOST
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.measure import row_writer
from trapline.measure.rows import ApiRequest, Operation
from trapline.measure.sql import recorder as queries
from trapline.model import JobId, OrganisationId

log = logs.get_logger(__name__)

FLUSH_SECONDS: Final = 2.0
MOST_IN_MEMORY: Final = 20_000
_AT_ONCE: Final = 2000
_SUMS_AT_ONCE: Final = 10_000

DROPPED = Counter("trapline_measurements_dropped_total", "Measurements that were never written.")


@dataclass(slots=True)
class Recorder:
    """One for a process. What it holds is lost with the process: measurements, not accounts.

    More than `most` are not held: while PostgreSQL is away, the newest are dropped and counted.
    """

    most: int = MOST_IN_MEMORY
    _operations: list[Operation] = field(default_factory=list)
    _requests: list[ApiRequest] = field(default_factory=list)

    def operation(self, operation: Operation) -> None:
        """Note what was done to a document."""
        if len(self._operations) >= self.most:
            DROPPED.inc()
            return
        self._operations.append(operation)

    def timed(
        self,
        kind: str,
        name: str,
        organisation_id: OrganisationId,
        *,
        job_id: JobId | None = None,
        document_url: str | None = None,
    ) -> "TimedBlock":
        """Note how long a block took, and with what error it was left."""

        def note(milliseconds: float, error: str | None, extra: dict[str, object]) -> None:
            self.operation(
                Operation(
                    type=kind,
                    name=name,
                    organisation_id=organisation_id,
                    milliseconds=milliseconds,
                    job_id=job_id,
                    document_url=document_url,
                    error=error,
                    extra=extra or None,
                )
            )

        return TimedBlock(note)

    def request(self, request: ApiRequest) -> None:
        """Note a request that was answered."""
        if len(self._requests) >= self.most:
            DROPPED.inc()
            return
        self._requests.append(request)

    async def run(self, database: Database) -> None:
        """Write what was noted every few seconds, and what is left when cancelled."""
        try:
            while True:
                await asyncio.sleep(FLUSH_SECONDS)
                await self.flush(database)
        except asyncio.CancelledError:
            await self.flush(database)
            raise

    async def flush(self, database: Database) -> int:
        """Write all that was noted; return how many. What cannot be written is kept for later."""
        written = 0
        try:
            while operations := self._operations[:_AT_ONCE]:
                await row_writer.write_operations(database, operations)
                del self._operations[: len(operations)]
                written += len(operations)
            while requests := self._requests[:_AT_ONCE]:
                await row_writer.write_requests(database, requests)
                del self._requests[: len(requests)]
                written += len(requests)
        except (*LOST, *EXHAUSTED, DatabaseUnavailable) as error:
            log.warning("measurements wait for PostgreSQL", error=str(error))
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
            # A row that no second attempt would make fit must not hold up all that come after it.
            log.warning("measurements were refused", error=str(error))
            DROPPED.inc(len(self._operations) + len(self._requests))
            self._operations.clear()
            self._requests.clear()
        return written


class TimedBlock:
    """Measures a block; gives it a dict for what else is to be noted."""

    def __init__(self, note: Callable[[float, str | None, dict[str, object]], None]) -> None:
        self._note = note
        self._extra: dict[str, object] = {}

    def __enter__(self) -> dict[str, object]:
        self._began = time.perf_counter()
        return self._extra

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        took = (time.perf_counter() - self._began) * 1000
        self._note(took, None if kind is None else str(error) or kind.__name__, self._extra)


async def drop_job_times(database: Database) -> int:
    """Forget what jobs took once their other traces are past their time too."""
    keep, gone, part = timedelta(days=database.settings.retention.keep_days), 0, _SUMS_AT_ONCE
    while part >= _SUMS_AT_ONCE:
        async with database.system_tx() as conn:
            part = await queries.drop_job_times(conn, keep=keep, most=_SUMS_AT_ONCE)
        gone += part
    return gone
