"""The choice between lanes: fair, ageing, and never more than asked for."""

from collections import Counter
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from trapline.model import JobId, OrganisationId
from trapline.queue.sql.claim import ServedLanesRow
from trapline.queue.worker.lanes import (
    EMPTY_PAUSE,
    RESCAN_EVERY,
    START,
    Blocked,
    LaneRequest,
    Lanes,
)

ACME, UMBRELLA = (OrganisationId(UUID(int=n)) for n in (1, 2))


def row(lane_id: int, organisation_id: OrganisationId = ACME, priority: int = 0) -> ServedLanesRow:
    return ServedLanesRow(
        id=lane_id,
        organisation_id=organisation_id,
        job_id=JobId(uuid4()),
        gate_id=1,
        priority=priority,
        limited=False,
        ready_at=datetime.now(UTC),
        pending=False,
        zero_data_retention=False,
    )


def serve(lanes: Lanes, requests: list[LaneRequest], now: float) -> Counter[int]:
    """Answer every request in full."""
    for request in requests:
        lanes.on_claimed(request, [(0, n + 1) for n in range(request.take)], None, now)
    return Counter({request.lane.id: request.take for request in requests})


def test_one_lane_gets_all_the_room() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    (request,) = lanes.pick(500, 0)
    assert request.take == 500


def test_organisations_share_equally_however_many_lanes_they_have() -> None:
    lanes = Lanes()
    lanes.refresh([row(1, UMBRELLA), *(row(n) for n in range(2, 100))], 0)
    served: Counter[int] = Counter()
    for turn in range(100):
        served += serve(lanes, lanes.pick(40, turn * 0.01), turn * 0.01)
    share = served[1] / served.total()
    assert 0.4 < share < 0.6


def test_a_worse_priority_is_later_but_not_starved() -> None:
    lanes = Lanes()
    lanes.refresh([row(1, priority=0), row(2, priority=5)], 0)
    first_served: float | None = None
    for turn in range(200):
        now = turn * 0.05
        requests = lanes.pick(1, now)
        if requests[0].lane.id == 2 and first_served is None:
            first_served = now
        serve(lanes, requests, now)
    assert first_served is not None
    assert 4 <= first_served <= 6


@pytest.mark.parametrize("other", [ACME, UMBRELLA])
def test_lanes_at_one_slow_gate_take_turns(other: OrganisationId) -> None:
    lanes = Lanes()
    lanes.refresh([row(1), row(2, other)], 0)
    served: Counter[int] = Counter()
    for turn in range(20):
        gap = Blocked("gap", turn + 1.0)
        for position, request in enumerate(lanes.pick(10, float(turn))):
            got = [(0, turn + 1)] if position == 0 else []
            served[request.lane.id] += len(got)
            lanes.on_claimed(request, got, gap, float(turn))
    assert served == {1: 10, 2: 10}


@pytest.mark.parametrize("by", ["gate", "job", "organisation", "busy"])
def test_room_made_while_a_claim_looks_is_not_overlooked(by: str) -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    (request,) = lanes.pick(10, 0)
    lanes.free([request.lane.job_id], [], 0)
    lanes.on_claimed(request, [], Blocked(by, 100.0), 0)
    assert lanes.pick(10, 0)


def test_work_that_comes_while_a_claim_looks_is_not_overlooked() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    (request,) = lanes.pick(10, 0)
    lanes.wake(0)
    lanes.on_claimed(request, [(0, 1)], None, 0)
    (request,) = lanes.pick(10, 0)
    lanes.on_claimed(request, [(0, 2)], None, 0)
    assert not lanes.pick(10, 0)


@pytest.mark.parametrize("limited", [True, False])
def test_a_lane_that_gave_some_is_looked_at_when_there_is_room_again(*, limited: bool) -> None:
    lanes = Lanes()
    lanes.refresh([structs.replace(row(1), limited=limited)], 0)
    (request,) = lanes.pick(10, 0)
    lanes.on_claimed(request, [(0, 1)], None, 0)
    assert not lanes.pick(10, 0)
    lanes.free([request.lane.job_id], [], 0)
    assert bool(lanes.pick(10, 0)) == limited


def test_an_end_elsewhere_does_not_open_a_full_lane() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    (request,) = lanes.pick(10, 0)
    lanes.free([JobId(uuid4())], [99], 0)
    lanes.on_claimed(request, [], Blocked("gate", 100.0), 0)
    assert not lanes.pick(10, 0)


def test_an_empty_lane_rests_until_it_is_woken() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    (request,) = lanes.pick(10, 0)
    assert request.after == START
    lanes.on_claimed(request, [], None, 0)
    assert lanes.pick(10, 0.1) == []
    lanes.wake(0.2)
    assert len(lanes.pick(10, 0.2)) == 1
    assert lanes.next_at() is None


def test_lanes_of_a_job_that_got_tasks_are_looked_at_again() -> None:
    lanes, rows = Lanes(), [row(1), row(2)]
    lanes.refresh(rows, 0)
    for request in lanes.pick(100, 0):
        lanes.on_claimed(request, [], None, 0)
    lanes.on_new_tasks([rows[1].job_id], 0.1)
    (request,) = lanes.pick(100, 0.1)
    assert request.lane.id == 2
    # What came while a claim looked is not in its answer.
    lanes.on_new_tasks([rows[1].job_id], 0.2)
    lanes.on_claimed(request, [], None, 0.2)
    assert [request.lane.id for request in lanes.pick(100, 0.3)] == [2]


def test_a_blocked_lane_waits_for_its_time_or_for_a_slot() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    (request,) = lanes.pick(10, 0)
    lanes.on_claimed(request, [], Blocked("job", 5.0), 0)
    lanes.wake(1)
    assert lanes.pick(10, 1) == []
    lanes.free([request.lane.job_id], [], 2)
    (request,) = lanes.pick(10, 2)
    lanes.on_claimed(request, [], Blocked("gap", 5.0), 2)
    lanes.free([request.lane.job_id], [], 3)
    assert lanes.pick(10, 3) == [], "a gap ends with time alone"
    assert len(lanes.pick(10, 5)) == 1


def test_positions_are_hints_and_are_rescanned() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    serve(lanes, lanes.pick(10, 0), 0)
    (request,) = lanes.pick(10, 0.1)
    assert request.after == (0, 10)
    lanes.on_claimed(request, [], None, 0.1)
    (request,) = lanes.pick(10, 0.2)
    assert request.after == START, "nothing was found: look from the start"
    lanes.on_claimed(request, [(0, 20)] * 10, None, 0.2)
    (request,) = lanes.pick(10, 0.2 + RESCAN_EVERY)
    assert request.after == START, "and now and then anyway"


def test_a_dear_rescan_is_done_less_often() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    requests = lanes.pick(10, 0)
    lanes.on_claim_cost(requests, 1.0, 0)
    serve(lanes, requests, 0)
    serve(lanes, lanes.pick(10, RESCAN_EVERY + EMPTY_PAUSE), RESCAN_EVERY + EMPTY_PAUSE)
    (request,) = lanes.pick(10, 20)
    assert request.after != START


def test_an_idle_worker_does_not_walk_over_dead_rows_again_and_again() -> None:
    lanes = Lanes()
    lanes.refresh([row(1)], 0)
    requests = lanes.pick(10, 0)
    lanes.on_claim_cost(requests, 1.0, 0)
    serve(lanes, requests, 0)
    starts = 0
    for tick in range(1, 200):
        for request in lanes.pick(10, tick * 0.5):
            starts += request.after == START
            lanes.on_claim_cost([request], 1.0 if request.after == START else 0.001, tick * 0.5)
            lanes.on_claimed(request, [], None, tick * 0.5)
    assert 1 <= starts <= 2, "a second of walking is worth fifty of rest, in a hundred"
    lanes.wake(200)
    assert len(lanes.pick(10, 200)) == 1, "what is new is seen at once"


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([ACME, UMBRELLA])), max_size=30),
    st.integers(0, 300),
)
def test_never_more_than_the_room_and_no_lane_twice(
    chosen: list[tuple[int, OrganisationId]], room: int
) -> None:
    lanes = Lanes()
    lanes.refresh([row(lane_id, owner) for lane_id, owner in dict(chosen).items()], 0)
    requests = lanes.pick(room, 0)
    assert sum(request.take for request in requests) <= room
    assert len({request.lane.id for request in requests}) == len(requests)
    if room and chosen:
        assert requests


def test_lanes_that_are_gone_are_forgotten() -> None:
    lanes = Lanes()
    lanes.refresh([row(1), row(2)], 0)
    lanes.refresh([row(2)], 1)
    assert {request.lane.id for request in lanes.pick(100, 1)} == {2}
    assert len(lanes) == 1
