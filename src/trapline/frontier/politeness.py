"""How long a host is left alone between two requests: a pure function of what it did before.

    gap = max(minimum, last response time x 2^pressure) / requests in flight

A host that answers 429 or 503 raises the pressure, each success lets it fall. Robots' Crawl-delay
is a floor that no option of a job lowers; Retry-After is obeyed to the letter, up to a bound.
"""

from datetime import datetime, timedelta

from msgspec import Struct

from trapline.errors import OUTCOMES, ExitCode, HostDelay

DEFAULT_IN_FLIGHT = 2
MAX_PRESSURE = 10
LONGEST_GAP = 300.0
LONGEST_RETRY_AFTER = 86_400.0


class HostPace(Struct, frozen=True, gc=False):
    """What is remembered of a host between requests; it belongs in the host's gate row."""

    pressure: int = 0
    response_seconds: float = 0.0
    quiet_until: datetime | None = None


class PaceRules(Struct, frozen=True, gc=False):
    """What limits the pace: the setting, the host's robots.txt and the job's own options."""

    minimum: float = 0.0
    crawl_delay: float | None = None
    job_delay: float | None = None
    max_in_flight: int | None = None


class Gate(Struct, frozen=True, gc=False):
    """The pace of one host: seconds between two starts, and how many requests may be under way."""

    gap: float
    in_flight: int


def pace_after(
    pace: HostPace,
    code: ExitCode,
    *,
    response_seconds: float | None,
    retry_after: float | None,
    now: datetime,
) -> HostPace:
    """What is remembered once a request ended so."""
    match OUTCOMES[code].host_delay:
        case HostDelay.RISE:
            pressure = min(pace.pressure + 1, MAX_PRESSURE)
        case HostDelay.FALL:
            pressure = max(pace.pressure - 1, 0)
        case HostDelay.KEEP:
            pressure = pace.pressure
    return HostPace(
        pressure,
        pace.response_seconds if response_seconds is None else response_seconds,
        pace.quiet_until if retry_after is None else _later(pace.quiet_until, retry_after, now),
    )


def gate_of(pace: HostPace, rules: PaceRules) -> Gate:
    """The gap and the bound that hold for the next request to a host."""
    in_flight = _in_flight(rules)
    # Some servers refuse at once: their pressure must tell even where there is no response time.
    answered = max(pace.response_seconds, 0.1) if pace.pressure else pace.response_seconds
    adapted = min(max(rules.minimum, answered * 2**pace.pressure), LONGEST_GAP) / in_flight
    return Gate(
        gap=max(_wanted(adapted, pace, rules), rules.crawl_delay or 0.0), in_flight=in_flight
    )


def ready_at(pace: HostPace, gate: Gate, last_start: datetime) -> datetime:
    """When the next request to the host may start."""
    ready = last_start + timedelta(seconds=gate.gap)
    return max(ready, pace.quiet_until) if pace.quiet_until else ready


def _wanted(adapted: float, pace: HostPace, rules: PaceRules) -> float:
    """A job may choose its own delay, even none, but not while the host asks for less."""
    if rules.job_delay is None:
        return adapted
    return max(rules.job_delay, adapted) if pace.pressure else rules.job_delay


def _in_flight(rules: PaceRules) -> int:
    if rules.crawl_delay or rules.job_delay:
        # A delay between requests means one after the other.
        return 1
    return max(1, rules.max_in_flight or DEFAULT_IN_FLIGHT)


def _later(until: datetime | None, retry_after: float, now: datetime) -> datetime:
    asked = now + timedelta(seconds=min(max(retry_after, 0.0), LONGEST_RETRY_AFTER))
    return max(until, asked) if until else asked
