"""The claim: one statement finishes attempts and leases new tasks, and says which lanes are blocked."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from trapline.db.pool import Database
from trapline.model import AgentId, JobId
from trapline.queue.finish import Attempt, encode_value
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.sql import claim as queries
from trapline.queue.sql.claim import FinishAndClaimRow
from trapline.queue.tasks import Task
from trapline.queue.worker.lanes import Blocked, LaneRequest, Lanes
from trapline.queue.worker.leases import LEASE_TIME, MOST_STALLS


@dataclass(slots=True)
class Claim:
    """The tasks that a turn leased, and the jobs that have new events."""

    tasks: list[Task] = field(default_factory=list)
    # Tasks of a kind that this process does not know, or whose payload is not of that kind.
    unrunnable: list[Task] = field(default_factory=list)
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

    async def finish_and_claim(
        self, agent_id: AgentId, attempts: Sequence[Attempt], requests: Sequence[LaneRequest]
    ) -> Claim:
        """Finish attempts that have nothing to store, and claim, in one statement."""
        done: Sequence[Attempt] = attempts if all(attempt.plain for attempt in attempts) else ()
        began = time.perf_counter()
        async with self.database.system_autocommit(steady=True) as conn:
            rows = await queries.finish_and_claim(
                conn,
                leases=[attempt.task.lease_id for attempt in done],
                tasks=[attempt.task.id for attempt in done],
                results=_results(done),
                outcomes=[] if done else [attempt.row() for attempt in attempts],
                most_stalls=self.most_stalls,
                agent_id=agent_id,
                requests=[row for request in requests for row in request.rows()],
                starting=list(
                    {request.lane.job_id for request in requests if request.lane.pending}
                ),
                lease_time=self.lease_time,
            )
        self.lanes.on_claim_cost(requests, time.perf_counter() - began, time.monotonic())
        return self._read(rows, requests)

    def _read(self, rows: Sequence[FinishAndClaimRow], requests: Sequence[LaneRequest]) -> Claim:
        claim = Claim()
        asked = {request.lane.id: request for request in requests}
        got: dict[int, list[tuple[int, int]]] = defaultdict(list)
        blocked: dict[int, tuple[str, datetime]] = {}
        # The rows come in physical order.
        for row in sorted(rows, key=_position):
            if row.task_id is not None:
                lane_id = row.lane_id or 0
                got[lane_id].append((row.priority or 0, row.turn or 0))
                self._add(claim, row, asked[lane_id])
            elif row.lane_id is not None and row.blocked_until is not None:
                blocked[row.lane_id] = (row.blocked_by or "busy", row.blocked_until)
            elif row.job_id is not None:
                claim.news.append(row.job_id)
        now, clock = time.monotonic(), datetime.now(UTC)
        for request in requests:
            block = None
            if request.lane.id in blocked:
                by, until = blocked[request.lane.id]
                block = Blocked(by, now + max(0.0, (until - clock).total_seconds()))
            self.lanes.on_claimed(request, got[request.lane.id], block, now)
        return claim

    def _add(self, claim: Claim, row: FinishAndClaimRow, request: LaneRequest) -> None:
        kind = self.kinds.find(row.kind)
        task = _task(row, request, kind)
        if kind is None or kind.handler is None:
            claim.unrunnable.append(task)
            return
        decoder = self._decoders.get(kind.name)
        if decoder is None:
            decoder = self._decoders[kind.name] = msgspec.json.Decoder(kind.payload)
        try:
            task.payload = decoder.decode(row.payload or "null")
            claim.tasks.append(task)
        except msgspec.ValidationError as error:
            task.payload = error
            claim.unrunnable.append(task)


def _position(row: FinishAndClaimRow) -> tuple[int, int]:
    return row.priority or 0, row.turn or 0


def _results(done: Sequence[Attempt]) -> list[str]:
    """Return the results as JSON, empty where there is none; nothing when nobody has one."""
    if all(attempt.result.value is None for attempt in done):
        return []
    return [encode_value(attempt.result) or "" for attempt in done]


def _task(row: FinishAndClaimRow, request: LaneRequest, kind: Kind | None) -> Task:
    # In the order of Task's fields: names would cost more than all the rest. A claimed row has
    # all of these; the type of the answer cannot say so.
    lane = request.lane
    return Task(
        row.task_id,  # type: ignore[arg-type]
        lane.job_id,
        lane.organisation_id,
        row.kind,  # type: ignore[arg-type]
        None,
        row.attempts + 1,  # type: ignore[operator]
        row.max_attempts,  # type: ignore[arg-type]
        row.stalls,  # type: ignore[arg-type]
        row.priority,  # type: ignore[arg-type]
        row.lease_id,  # type: ignore[arg-type]
        lane.id,
        lane.gate_id,
        row.deadline,
        row.timeout or (kind.timeout if kind else timedelta()),
        row.trace_id,
        lane.zero_data_retention,
        request.limited,
    )
