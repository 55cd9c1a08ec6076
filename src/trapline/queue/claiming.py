"""One turn with the database: verdicts go in, tasks and what was learned about lanes come out."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from trapline.db.pool import Database
from trapline.model import AgentId, JobId
from trapline.queue.finishing import Attempt
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.lanes import Blocked, Lane, Lanes, Want
from trapline.queue.leases import LEASE_TIME, MOST_STALLS
from trapline.queue.sql import claiming as queries
from trapline.queue.sql.claiming import TurnRow
from trapline.queue.tasks import Task


@dataclass(slots=True)
class Claim:
    """What a turn brought."""

    tasks: list[Task] = field(default_factory=list)
    # Tasks of a kind that this process does not know, or with a payload of another shape.
    strange: list[Task] = field(default_factory=list)
    news: list[JobId] = field(default_factory=list)


@dataclass(slots=True)
class Claimer:
    """Claims for one agent."""

    database: Database
    kinds: Kinds
    lanes: Lanes
    lease_time: timedelta = LEASE_TIME
    most_stalls: int = MOST_STALLS
    _decoders: dict[str, msgspec.json.Decoder[object]] = field(default_factory=dict)

    async def turn(
        self, agent_id: AgentId, attempts: Sequence[Attempt], wants: Sequence[Want]
    ) -> Claim:
        """Finish attempts that have nothing to store, and claim, in one statement."""
        starting = {want.lane.job_id for want in wants if want.lane.pending}
        began = time.perf_counter()
        async with self.database.system_tx() as conn:
            rows = await queries.turn(
                conn,
                verdicts=[attempt.row() for attempt in attempts],
                most_stalls=self.most_stalls,
                agent_id=agent_id,
                wants=[row for want in wants for row in want.rows()],
                starting=list(starting),
                lease_time=self.lease_time,
            )
        self.lanes.cost(wants, time.perf_counter() - began)
        return self._read(rows, wants)

    def _read(self, rows: Sequence[TurnRow], wants: Sequence[Want]) -> Claim:
        claim = Claim()
        lanes = {want.lane.id: want.lane for want in wants}
        got: dict[int, list[tuple[int, int]]] = defaultdict(list)
        blocked: dict[int, tuple[str, datetime]] = {}
        for row in rows:
            if row.task_id is not None:
                lane_id = row.lane_id or 0
                got[lane_id].append((row.priority or 0, row.turn or 0))
                self._add(claim, row, lanes[lane_id])
            elif row.lane_id is not None and row.blocked_until is not None:
                blocked[row.lane_id] = (row.blocked_by or "busy", row.blocked_until)
            elif row.job_id is not None:
                claim.news.append(row.job_id)
        now, clock = time.monotonic(), datetime.now(UTC)
        for want in wants:
            block = None
            if want.lane.id in blocked:
                by, until = blocked[want.lane.id]
                block = Blocked(by, now + max(0.0, (until - clock).total_seconds()))
            self.lanes.answered(want, got[want.lane.id], block, now)
        return claim

    def _add(self, claim: Claim, row: TurnRow, lane: Lane) -> None:
        kind = self.kinds.find(row.kind)
        task = _task(row, lane, kind)
        if kind is None or kind.handler is None:
            claim.strange.append(task)
            return
        decoder = self._decoders.get(kind.name)
        if decoder is None:
            decoder = self._decoders[kind.name] = msgspec.json.Decoder(kind.payload)
        try:
            task.payload = decoder.decode(row.payload or "null")
            claim.tasks.append(task)
        except msgspec.ValidationError as error:
            task.payload = error
            claim.strange.append(task)


def _task(row: TurnRow, lane: Lane, kind: Kind | None) -> Task:
    # A claimed row has all of these; the type of the answer cannot say so.
    return Task(
        id=row.task_id,  # type: ignore[arg-type]
        job_id=lane.job_id,
        organisation_id=lane.organisation_id,
        kind=row.kind,  # type: ignore[arg-type]
        payload=None,
        attempt=row.attempts + 1,  # type: ignore[operator]
        max_attempts=row.max_attempts,  # type: ignore[arg-type]
        stalls=row.stalls,  # type: ignore[arg-type]
        priority=row.priority,  # type: ignore[arg-type]
        lease_id=row.lease_id,  # type: ignore[arg-type]
        lane_id=lane.id,
        gate_id=lane.gate_id,
        deadline=row.deadline,
        timeout=row.timeout or (kind.timeout if kind else timedelta()),
        created_at=row.created_at,  # type: ignore[arg-type]
        trace_id=row.trace_id,
        zero_data_retention=lane.zero_data_retention,
    )
