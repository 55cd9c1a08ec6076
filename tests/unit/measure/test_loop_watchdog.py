"""The watchdog of the event loop."""

import asyncio
import time

import pytest

from trapline.measure import loop_watchdog


def over_half_a_second() -> float:
    """Delays of more than half a second that were counted so far."""
    samples = {
        sample.labels.get("le"): sample.value
        for metric in loop_watchdog.DELAY.collect()
        for sample in metric.samples
        if sample.name.endswith("_bucket")
    }
    return samples["+Inf"] - samples["0.5"]


async def test_a_blocked_loop_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(loop_watchdog.log, "warning", lambda text, **_: warnings.append(text))
    before = over_half_a_second()
    watchdog = asyncio.create_task(loop_watchdog.watch_loop())
    await asyncio.sleep(0)
    time.sleep(1.2)  # noqa: ASYNC251 - the fault that is measured
    while over_half_a_second() == before:  # noqa: ASYNC110 - nothing tells of a metric
        await asyncio.sleep(0.01)
    watchdog.cancel()
    assert warnings[0] == "the event loop was blocked"
