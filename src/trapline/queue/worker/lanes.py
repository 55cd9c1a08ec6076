"""Lanes as a worker remembers them, and the fair choice between them.

Everything here is a hint: the database decides what a claim returns. Organisations take turns; within
one, the lane that has waited longest comes first, where one step of priority is worth one second
of waiting. So a worse priority is served later, but always served.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from trapline.model import JobId, OrganisationId
from trapline.queue.sql.claim import ServedLanesRow

START: Final = (-(2**15), 0)
"""Before every position in a lane."""
LAST_PRIORITY: Final = 2**15 - 1

SECONDS_PER_PRIORITY: Final = 1.0
# What a lane is asked for at least. While tasks are done fast and many are claimed at a time, it is
# more: one look at a lane costs as much as a few tasks.
QUANTUM: Final = 8
LANES_PER_TURN: Final = 32
RESCAN_EVERY: Final = 1.5
# A rescan begins where we stood so long ago: what a transaction numbered before that, it has
# committed by now. Only a look that finds nothing, and one now and then, begins at the start,
# for that walks over all rows that died under a long-held snapshot.
FLOOR_AGE: Final = 30.0
FULL_RESCAN_EVERY: Final = 300.0
# Whatever a rescan costs, it takes no more than this share of the time; one from the start neither,
# even where nothing else was found: an idle worker would walk over the dead rows every second.
RESCAN_SHARE: Final = 0.02
EMPTY_PAUSE: Final = 1.0


@dataclass(slots=True)
class Lane:
    """One job's line at one gate, with the position up to which this worker has claimed."""

    id: int
    organisation_id: OrganisationId
    job_id: JobId
    gate_id: int
    priority: int
    limited: bool
    pending: bool
    zero_data_retention: bool
    after: tuple[int, int] = START
    rescan_at: float = 0.0
    full_rescan_at: float = 0.0
    # Not before this, after what the last one cost.
    full_rescan_from: float = 0.0
    floor: tuple[int, int] = START
    next_floor: tuple[int, int] = START
    floor_at: float = 0.0
    # In a heap, either due or parked; False while a claim reads it.
    listed: bool = False
    # New tasks or free slots came while a claim read it, so the answer is out of date.
    changed: bool = False
    # The one entry among the parked that counts; others are left over.
    parked_until: float = 0.0
    # The answer that last brought it a task, counted by this worker: of lanes that are due at one
    # time, the one that waited longest is first, or the same one would win a slow gate every time.
    served: int = 0


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a claim got no more tasks of a lane, and until when."""

    by: str
    until: float


# Reasons that another task's end can remove; a gap only ends with time.
_FREED: Final = frozenset({"gate", "job", "organisation", "busy"})
_EMPTY: Final = "empty"
# Fewer tasks than requested: the lane is empty, or its limits are reached.
_SOME: Final = "some"


LaneRequestRow = tuple[int | None, int | None, int | None, int | None, int | None, bool | None]
"""A request as queue.want has it."""


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """How many tasks a claim asks of a lane."""

    lane: Lane
    take: int
    after: tuple[int, int]
    limited: bool
    rescan: bool = False

    def rows(self) -> list[LaneRequestRow]:
        """Return it as the database takes it; a rescan also looks at all better priorities."""
        lane = self.lane
        rows: list[LaneRequestRow] = [
            (lane.id, self.take, *self.after, LAST_PRIORITY, self.limited)
        ]
        if self.rescan and self.after != START:
            rows.insert(0, (lane.id, self.take, *START, self.after[0] - 1, self.limited))
        return rows


def _looked_far(request: LaneRequest, now: float) -> bool:
    """Whether a claim that found nothing has looked as far as it may now."""
    return request.after == START or (request.rescan and now < request.lane.full_rescan_from)


# When a lane is due, the answer that it was last served by, its id.
_Entry = tuple[float, int, int]


class Lanes:
    """The lanes that this worker may serve."""

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}
        self._due: dict[OrganisationId, list[_Entry]] = {}
        self._turns: deque[OrganisationId] = deque()
        self._parked: list[_Entry] = []
        self._answers = 0
        # Of the parked: those in which nothing stood, and those that another task's end may free.
        self._empty: set[int] = set()
        self._full: set[int] = set()
        # Those that a claim reads.
        self._requested: dict[int, Lane] = {}
        self._rescan_every = RESCAN_EVERY

    def __len__(self) -> int:
        return len(self._lanes)

    def get(self, lane_id: int) -> Lane | None:
        return self._lanes.get(lane_id)

    def refresh(self, rows: Iterable[ServedLanesRow], now: float) -> None:
        """Take over what the database says: new lanes come, others go, flags change."""
        served: dict[int, Lane] = {}
        for row in rows:
            lane = self._lanes.get(row.id)
            if lane is None:
                lane = Lane(
                    row.id,
                    row.organisation_id,
                    row.job_id,
                    row.gate_id,
                    row.priority,
                    row.limited,
                    row.pending,
                    row.zero_data_retention,
                )
                served[row.id] = lane
                self._list(lane, now)
            else:
                lane.limited, lane.pending = row.limited, row.pending
                served[row.id] = lane
        self._lanes = served

    def pick(self, room: int, now: float) -> list[LaneRequest]:
        """Choose lanes and how much to ask of each, fairly, for so many tasks in all."""
        self._unpark(now)
        requests: list[LaneRequest] = []
        # Each organisation's part of the room, however many lanes it has to spread it over.
        share = room // max(1, len(self._due))
        least = max(QUANTUM, room // LANES_PER_TURN)
        takes = {owner: max(least, share // max(1, len(due))) for owner, due in self._due.items()}
        while room > 0 and self._turns:
            organisation_id = self._turns.popleft()
            due = self._due[organisation_id]
            lane = self._lanes.get(heappop(due)[-1])
            if due:
                self._turns.append(organisation_id)
            else:
                del self._due[organisation_id]
            # An entry may be left over from a lane that went and came back.
            if lane is not None and lane.listed and not lane.parked_until:
                requests.append(self._request(lane, min(room, takes[organisation_id]), now))
                room -= requests[-1].take
        return requests

    def _request(self, lane: Lane, take: int, now: float) -> LaneRequest:
        lane.listed = lane.changed = False
        self._requested[lane.id] = lane
        if now < lane.rescan_at:
            return LaneRequest(lane, take, lane.after, lane.limited)
        lane.rescan_at = now + self._rescan_every
        if now >= lane.full_rescan_at:
            lane.full_rescan_at = now + FULL_RESCAN_EVERY
            return LaneRequest(lane, take, START, lane.limited, rescan=True)
        if now >= lane.floor_at:
            lane.floor, lane.next_floor, lane.floor_at = (
                lane.next_floor,
                lane.after,
                now + FLOOR_AGE,
            )
        costly = lane.floor == START and now < lane.full_rescan_from
        floor = lane.after if costly else min(lane.floor, lane.after)
        return LaneRequest(lane, take, floor, lane.limited, rescan=True)

    def on_claimed(
        self,
        request: LaneRequest,
        got: Sequence[tuple[int, int]],
        blocked: Blocked | None,
        now: float,
    ) -> None:
        """Note what a claim returned: the positions of its tasks, and what blocks the lane now."""
        lane = request.lane
        self._requested.pop(lane.id, None)
        if got:
            last = max(got)
            lane.pending = False
            self._answers += 1
            lane.served = self._answers
            # A rescan that found an older task says nothing about those that we skipped.
            lane.after = max(last, lane.after) if request.rescan else last
        if blocked is not None and not (lane.changed and blocked.by in _FREED):
            self._park(lane, blocked.until, blocked.by)
        elif lane.changed:
            self._list(lane, now)
        elif len(got) < request.take and (got or _looked_far(request, now)):
            self._park(lane, now + EMPTY_PAUSE, _SOME if got and request.limited else _EMPTY)
        else:
            if not got:
                lane.rescan_at, lane.full_rescan_at = now, max(now, lane.full_rescan_from)
            self._list(lane, now)

    def on_claim_cost(self, requests: Sequence[LaneRequest], seconds: float, now: float) -> None:
        """Rescan less often the more a rescan costs."""
        pause = min(FULL_RESCAN_EVERY, seconds / RESCAN_SHARE)
        if any(request.rescan for request in requests):
            self._rescan_every = max(RESCAN_EVERY, pause)
        for request in requests:
            if request.after == START:
                request.lane.full_rescan_from = now + pause

    def on_claim_failed(self, requests: Iterable[LaneRequest], now: float) -> None:
        """Let the lanes of a failed claim be rescanned."""
        for request in requests:
            self._requested.pop(request.lane.id, None)
            request.lane.rescan_at = request.lane.full_rescan_at = now
            self._list(request.lane, now)

    def wake(self, now: float) -> None:
        """There may be new tasks: let the lanes that seemed empty be claimed from again."""
        # New tasks come after the known position; the rescan finds any others.
        self._release(self._empty, now)
        for lane in self._requested.values():
            lane.changed = True

    def on_new_tasks(self, job_ids: Iterable[JobId], now: float) -> None:
        """Jobs have more tasks: let those of their lanes that seemed empty be claimed from again."""
        jobs = set(job_ids)
        for asked in self._requested.values():
            asked.changed |= asked.job_id in jobs
        empty = [lane for lane_id in self._empty if (lane := self._lanes.get(lane_id)) is not None]
        self._release([lane.id for lane in empty if lane.job_id in jobs], now)

    def free(self, job_ids: Iterable[JobId], gate_ids: Iterable[int], now: float) -> None:
        """Tasks ended: let the lanes that a full gate or job blocked be claimed from again."""
        if not self._full and not self._requested:
            return
        jobs, gates = set(job_ids), set(gate_ids)
        for asked in self._requested.values():
            asked.changed |= asked.job_id in jobs or asked.gate_id in gates
        full = [lane for lane_id in self._full if (lane := self._lanes.get(lane_id)) is not None]
        freed = [lane.id for lane in full if lane.job_id in jobs or lane.gate_id in gates]
        self._release(freed, now)

    def next_at(self) -> float | None:
        """Return when a parked lane is worth another look; None when there is none."""
        while self._parked:
            until, _, lane_id = self._parked[0]
            lane = self._lanes.get(lane_id)
            if lane is not None and lane.parked_until == until:
                return until
            heappop(self._parked)
        return None

    def _list(self, lane: Lane, now: float) -> None:
        if lane.listed:
            return
        lane.listed = True
        due = self._due.get(lane.organisation_id)
        if due is None:
            due = self._due[lane.organisation_id] = []
            self._turns.append(lane.organisation_id)
        heappush(due, (now + lane.priority * SECONDS_PER_PRIORITY, lane.served, lane.id))

    def _park(self, lane: Lane, until: float, why: str) -> None:
        lane.listed, lane.parked_until = True, until
        if why in {_EMPTY, _SOME}:
            self._empty.add(lane.id)
        if why == _SOME or why in _FREED:
            self._full.add(lane.id)
        heappush(self._parked, (until, lane.served, lane.id))

    def _unpark(self, now: float) -> None:
        while self._parked and self._parked[0][0] <= now:
            until, _, lane_id = heappop(self._parked)
            lane = self._lanes.get(lane_id)
            if lane is not None and lane.parked_until == until:
                self._release([lane_id], now)

    def _release(self, lane_ids: Iterable[int], now: float) -> None:
        """Let parked lanes be picked again."""
        for lane_id in list(lane_ids):
            self._empty.discard(lane_id)
            self._full.discard(lane_id)
            lane = self._lanes.get(lane_id)
            if lane is not None:
                lane.parked_until, lane.listed = 0.0, False
                self._list(lane, now)
