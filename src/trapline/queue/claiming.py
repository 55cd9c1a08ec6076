"""One turn with the database: verdicts go in, tasks and what was learned about lanes come out."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from trapline.db.pool import Database
from trapline.model import AgentId, JobId
from trapline.queue.finishing import Attempt, encode
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.lanes import Blocked, Lanes, Want
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
        done: Sequence[Attempt] = attempts if all(attempt.plain for attempt in attempts) else ()
        began = time.perf_counter()
        async with self.database.system_statement(steady=True) as conn:
            rows = await queries.turn(
                conn,
                leases=[attempt.task.lease_id for attempt in done],
                tasks=[attempt.task.id for attempt in done],
                results=_results(done),
                verdicts=[] if done else [attempt.row() for attempt in attempts],
                most_stalls=self.most_stalls,
                agent_id=agent_id,
                wants=[row for want in wants for row in want.rows()],
                starting=list({want.lane.job_id for want in wants if want.lane.pending}),
                lease_time=self.lease_time,
            )
        self.lanes.cost(wants, time.perf_counter() - began, time.monotonic())
        return self._read(rows, wants)

    def _read(self, rows: Sequence[TurnRow], wants: Sequence[Want]) -> Claim:
        claim = Claim()
        asked = {want.lane.id: want for want in wants}
        got: dict[int, list[tuple[int, int]]] = defaultdict(list)
        blocked: dict[int, tuple[str, datetime]] = {}
        # The database answers in the order in which the rows lie.
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
        for want in wants:
            block = None
            if want.lane.id in blocked:
                by, until = blocked[want.lane.id]
                block = Blocked(by, now + max(0.0, (until - clock).total_seconds()))
            self.lanes.answered(want, got[want.lane.id], block, now)
        return claim

    def _add(self, claim: Claim, row: TurnRow, want: Want) -> None:
        kind = self.kinds.find(row.kind)
        task = _task(row, want, kind)
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


def _position(row: TurnRow) -> tuple[int, int]:
    return row.priority or 0, row.turn or 0


def _results(done: Sequence[Attempt]) -> list[str]:
    """Return the results as JSON, empty where there is none; nothing when nobody has one."""
    if all(attempt.result is None for attempt in done):
        return []
    return ["" if attempt.result is None else encode(attempt.result) for attempt in done]


def _task(row: TurnRow, want: Want, kind: Kind | None) -> Task:
    # In the order of Task's fields: names would cost more than all the rest. A claimed row has
    # all of these; the type of the answer cannot say so.
    lane = want.lane
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
        want.limited,
    )
