"""What can be said of webhooks without a server: names, filters, patience."""

from datetime import UTC, datetime, timedelta

import pytest

from trapline.deliver.retry_policy import DeliveryRetryPolicy
from trapline.deliver.subscriptions import event_name, matches_filters

NOW = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("job.started", "crawl.started"),
        ("page", "crawl.page"),
        ("job.cancelled", "crawl.cancelled"),
        ("job.paused", None),
        ("job.reopened", None),
    ],
)
def test_events_have_the_names_that_receivers_know(event: str, name: str | None) -> None:
    assert event_name("crawl", event) == name


@pytest.mark.parametrize(
    ("filters", "name", "wanted"),
    [
        ([], "crawl.page", True),
        (["page"], "crawl.page", True),
        (["crawl.page"], "crawl.page", True),
        (["completed"], "crawl.page", False),
        (["check.completed"], "monitor.check.completed", True),
        (["check"], "monitor.check.completed", True),
        (["completed"], "monitor.check.completed", False),
    ],
)
def test_a_filter_is_a_name_or_a_part_of_one(filters: list[str], name: str, wanted: bool) -> None:
    assert matches_filters(filters, name) is wanted


def test_a_failing_delivery_waits_longer_then_steps_aside_then_is_given_up() -> None:
    patience = DeliveryRetryPolicy()

    def after(attempts: int, age: timedelta, tried: timedelta) -> tuple[str, timedelta]:
        state, due = patience.after_failure(
            attempts=attempts, created_at=NOW - age, first_attempt_at=NOW - tried, now=NOW
        )
        return state, due - NOW

    minute = timedelta(minutes=1)
    assert after(1, minute, timedelta()) == ("pending", timedelta(seconds=1))
    assert after(3, minute, timedelta()) == ("pending", timedelta(seconds=4))
    assert after(5000, minute, timedelta()) == ("pending", minute)
    assert after(20, 15 * minute, 15 * minute) == ("aside", 60 * minute)
    # It waited behind others for long, but was tried only now: it keeps its turn.
    assert after(1, 600 * minute, timedelta()) == ("pending", timedelta(seconds=1))
    assert after(30, timedelta(days=1), timedelta(days=1))[0] == "dead"
    assert after(1, timedelta(days=2), timedelta())[0] == "dead"
