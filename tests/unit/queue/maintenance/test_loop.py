"""When the duties of maintenance are first done."""

from datetime import timedelta

from trapline.db.pool import Database
from trapline.queue.maintenance.loop import first_delays
from trapline.queue.maintenance.periodic import Duty


async def _nothing(_: Database) -> int:
    return 0


def test_what_is_often_done_is_done_first_and_nothing_at_once() -> None:
    spans = [timedelta(seconds=1), timedelta(hours=1), timedelta(minutes=10), timedelta(seconds=1)]
    delays = first_delays([Duty("any", _nothing, span) for span in spans])
    assert len(set(delays)) == len(delays)
    assert max(delays[0], delays[3]) < min(delays[1], delays[2])
    assert delays[1] < delays[2] < 5


def test_a_duty_alone_waits_for_nobody() -> None:
    assert first_delays([]) == []
    assert first_delays([Duty("any", _nothing, timedelta(seconds=60))]) == [2]


def test_what_has_tasks_to_begin_comes_first() -> None:
    assert min(first_delays([Duty("any", _nothing, timedelta(seconds=1))])) == 0.5
