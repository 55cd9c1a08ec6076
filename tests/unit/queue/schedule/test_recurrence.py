"""When schedules tick: cron and intervals, over both clock changes of the year."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import InvalidInput
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.schedule.schedules import latest_due_tick, priority_of

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def cron(rule: str, timezone: str = "Europe/Berlin") -> Rule:
    return Rule("recurring", cron=rule, timezone=timezone)


def local(ticks: list[datetime]) -> list[str]:
    return [tick.astimezone(BERLIN).strftime("%m-%d %H:%M %z") for tick in ticks]


def test_a_daily_rule_keeps_its_wall_clock_hour() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert local(cron("0 9 * * *").upcoming(before, 2)) == [
        "03-29 09:00 +0200",
        "03-30 09:00 +0200",
    ]
    before = datetime(2026, 10, 24, 12, tzinfo=BERLIN)
    assert local(cron("0 9 * * *").upcoming(before, 1)) == ["10-25 09:00 +0100"]


def test_a_time_that_spring_skips_runs_right_after_the_gap() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert local(cron("30 2 * * *").upcoming(before, 2)) == [
        "03-29 03:00 +0200",
        "03-30 02:30 +0200",
    ]


def test_a_time_that_autumn_repeats_runs_once() -> None:
    before = datetime(2026, 10, 24, 12, tzinfo=BERLIN)
    assert local(cron("30 2 * * *").upcoming(before, 2)) == [
        "10-25 02:30 +0200",
        "10-26 02:30 +0100",
    ]


def test_a_rule_asked_within_the_repeated_hour_does_not_go_back() -> None:
    second_passing = datetime(2026, 10, 25, 0, 30, tzinfo=UTC) + HOUR
    assert local(cron("45 2 * * *").upcoming(second_passing, 1)) == ["10-26 02:45 +0100"]


def test_a_rule_of_every_quarter_of_an_hour_has_no_hole_and_no_double() -> None:
    for start in (datetime(2026, 3, 28, 22, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC)):
        ticks = cron("*/15 * * * *").upcoming(start, 30)
        steps = {after - before for before, after in itertools.pairwise(ticks)}
        assert steps == {timedelta(minutes=15)}


def test_an_interval_counts_elapsed_time_from_its_start() -> None:
    start = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    rule = Rule("recurring", every=24 * HOUR, timezone="Europe/Berlin", starts_at=start)
    assert local(rule.upcoming(start, 1)) == ["03-29 13:00 +0200"]
    assert rule.next(start - HOUR) == start
    assert rule.next(start + 3650 * 24 * HOUR) == start.astimezone(UTC) + 3651 * 24 * HOUR


def test_the_other_kinds_tick_once() -> None:
    assert Rule("one_time").first(NOON) == NOON
    assert Rule("one_time").next(NOON) is None
    planned = Rule("scheduled", starts_at=NOON + HOUR)
    assert planned.upcoming(NOON, 5) == [NOON + HOUR]
    assert planned.next(NOON + HOUR) is None


def test_a_rule_has_a_beginning_and_an_end() -> None:
    rule = Rule("recurring", cron="0 * * * *", starts_at=NOON, ends_at=NOON + 2 * HOUR)
    assert rule.upcoming(NOON - 9 * HOUR, 9) == [NOON, NOON + HOUR, NOON + 2 * HOUR]


@pytest.mark.parametrize("name", ["@hourly", "@DAILY", " @weekly ", "@monthly", "@yearly"])
def test_named_rules(name: str) -> None:
    rule = cron(name, "UTC")
    rule.check()
    assert rule.next(NOON) is not None


@pytest.mark.parametrize(
    "rule",
    [
        cron(""),
        cron("* * * *"),
        cron("* * * * * *"),
        cron("61 * * * *"),
        cron("0 0 30 2 *"),
        cron("* " * 300),
        cron("0 9 * * *", "Europe/Nowhere"),
        cron("0 9 * * *", "../../etc/passwd"),
        cron("0 9 * * *", ""),
        cron("0 9 * * *", "Europe/Berlin\0"),
        Rule("recurring"),
        Rule("recurring", cron="0 9 * * *", every=HOUR),
        Rule("recurring", every=timedelta(seconds=59)),
        Rule("recurring", every=-HOUR),
        Rule("recurring", every=timedelta(days=10_000)),
        Rule("scheduled"),
        Rule("scheduled", every=HOUR, starts_at=NOON),
        Rule("one_time", cron="0 9 * * *"),
        Rule("one_time", starts_at=NOON),
        Rule("scheduled", starts_at=datetime(2026, 1, 1)),  # noqa: DTZ001 (what is refused)
    ],
)
def test_a_rule_that_cannot_tick_is_refused(rule: Rule) -> None:
    with pytest.raises(InvalidInput):
        rule.check()


@given(
    st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 */3 * * *", "15 1,2,3 * * 0", "0 0 L * *"]),
    st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_ticks_come_in_order_after_the_moment(rule: str, moment: datetime) -> None:
    ticks = [moment, *cron(rule).upcoming(moment, 40)]
    assert all(before < after for before, after in itertools.pairwise(ticks))


def test_a_missed_tick_is_worth_a_job_for_an_hour() -> None:
    rule = Rule("recurring", cron="0 * * * *")
    assert latest_due_tick(rule, NOON, at=NOON + 0.5 * HOUR, grace=HOUR) == NOON
    assert latest_due_tick(rule, NOON, at=NOON + 5.9 * HOUR, grace=HOUR) == NOON + 5 * HOUR
    daily = Rule("recurring", cron="0 12 * * *")
    assert latest_due_tick(daily, NOON, at=NOON + HOUR, grace=HOUR) == NOON
    assert latest_due_tick(daily, NOON, at=NOON + 1.1 * HOUR, grace=HOUR) is None
    assert latest_due_tick(daily, NOON, at=NOON, grace=timedelta()) == NOON


def test_importance_is_turned_round() -> None:
    assert [priority_of(n) for n in (1, 5, 10)] == [4, 0, -5]
    for wrong in (0, 11, -3):
        with pytest.raises(InvalidInput):
            priority_of(wrong)
