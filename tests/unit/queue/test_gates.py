"""What the attempts of one batch teach of their gate."""

from datetime import UTC, datetime, timedelta

from trapline.queue.gates import GateChange

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_of_two_changes_the_more_careful_holds() -> None:
    one = GateChange(SECOND, 3, NOW)
    other = GateChange(2 * SECOND, 1, NOW - SECOND)
    assert one.and_also(other) == other.and_also(one) == GateChange(2 * SECOND, 3, NOW)


def test_what_one_of_them_does_not_say_the_other_says() -> None:
    assert GateChange(gap=SECOND).and_also(GateChange(pressure=0)) == GateChange(SECOND, 0)
    assert GateChange(not_before=NOW).and_also(None) == GateChange(not_before=NOW)
