"""Rate and remaining time count what this run did."""

import pytest

from trapline.cli import job_progress
from trapline.cli.job_progress import Display


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(job_progress.time, "monotonic", lambda: now[0])
    return now


def test_pages_of_an_earlier_run_do_not_count(clock: list[float]) -> None:
    display = Display("pages", quiet=True)
    assert display._rate(5_000) == 0
    clock[0] += 2
    assert display._rate(5_020) == 10


@pytest.mark.parametrize(
    ("remaining", "rate", "said"),
    [
        (100, 0.0, ""),
        (10, 1.0, ""),
        (100, 1.0, "about 2 min"),
        (9_000, 1.0, "about 2 h 30 min"),
    ],
)
def test_the_remaining_time_is_said_once_it_matters(remaining: int, rate: float, said: str) -> None:
    assert job_progress._eta(remaining, rate) == said
