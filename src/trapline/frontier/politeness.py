"""Politeness: the gap between two requests to a host, a pure function of its recent answers.

    gap = max(minimum, last response time * 2^pressure) / requests in flight

The exit code of a request decides how the pressure changes (`HostDelay` in the table of outcomes):

- 429 and 503 raise it: the host itself asks for fewer requests.
- Other errors (5xx, time-outs, closed connections, challenges) raise it only when most recent URLs of the
  host failed so, and only up to a bound. A broken URL is not a host in trouble, and retries of one URL say
  nothing new about its host.
- Each success lets it fall.

Retry-After pauses the whole host, at first for a minute at most; each further one without a success in
between doubles that bound, up to a setting. The URL that was refused waits as long as the server asks. The
Crawl-delay of robots.txt and the delay of a job are kept by the queue: the floor of the gate, the gap of the
lane.
"""

from datetime import datetime, timedelta

from msgspec import Struct

from trapline.errors import OUTCOMES, ExitCode, HostDelay

DEFAULT_IN_FLIGHT = 2
MAX_PRESSURE = 10
# The pressure up to which errors raise it that the host does not explain.
MAX_ERROR_PRESSURE = 4
# The share of recent URLs that must have failed, and the weight of the latest one in it.
FAILING_SHARE = 0.75
_WEIGHT = 0.1
LONGEST_GAP = 300.0
# The longest pause of a host after one Retry-After.
FIRST_RETRY_AFTER = 60.0


class HostPace(Struct, frozen=True, gc=False):
    """What is remembered of a host between requests."""

    pressure: int = 0
    response_seconds: float = 0.0
    # The share of recent URLs that failed, weighted towards the latest.
    failing: float = 0.0
    # Answers with Retry-After since the last success.
    refusals: int = 0
    quiet_until: datetime | None = None


class HostAnswer(Struct, frozen=True, gc=False):
    """What a request tells of its host. `retried`: it was not the first attempt at its URL."""

    code: ExitCode
    response_seconds: float | None = None
    retry_after: float | None = None
    retried: bool = False

    @property
    def delay(self) -> HostDelay:
        return OUTCOMES[self.code].host_delay


def pace_after(
    pace: HostPace, answer: HostAnswer, *, longest_pause: float, now: datetime
) -> HostPace:
    """Return the pace of a host after an answer; it pauses for at most `longest_pause` seconds."""
    failing = _failing(pace.failing, answer)
    refusals = _refusals(pace.refusals, answer)
    seconds = answer.response_seconds
    return HostPace(
        _pressure(pace.pressure, failing, answer),
        pace.response_seconds if seconds is None else seconds,
        failing,
        refusals,
        _quiet_until(pace.quiet_until, refusals, answer, longest_pause, now),
    )


def gap_of(pace: HostPace, *, minimum: float, in_flight: int) -> float:
    """Return the seconds between two requests to a host, when so many may be in flight."""
    # Some servers refuse at once: their pressure must tell even where there is no response time.
    answered = max(pace.response_seconds, 0.1) if pace.pressure else pace.response_seconds
    slowed: float = answered * 2**pace.pressure
    return min(max(minimum, slowed), LONGEST_GAP) / max(1, in_flight)


def _failing(share: float, answer: HostAnswer) -> float:
    if answer.delay is HostDelay.KEEP or answer.retried:
        return share
    return share + _WEIGHT * ((answer.delay is not HostDelay.FALL) - share)


def _refusals(refusals: int, answer: HostAnswer) -> int:
    if answer.delay is HostDelay.FALL:
        return 0
    return refusals + (answer.retry_after is not None)


def _pressure(pressure: int, failing: float, answer: HostAnswer) -> int:
    match answer.delay:
        case HostDelay.RISE:
            return min(pressure + 1, MAX_PRESSURE)
        case HostDelay.RISE_IF_FREQUENT if failing >= FAILING_SHARE and not answer.retried:
            return max(pressure, min(pressure + 1, MAX_ERROR_PRESSURE))
        case HostDelay.FALL:
            return max(pressure - 1, 0)
        case _:
            return pressure


def _quiet_until(
    until: datetime | None, refusals: int, answer: HostAnswer, longest: float, now: datetime
) -> datetime | None:
    if answer.retry_after is None:
        return until
    bound = min(longest, FIRST_RETRY_AFTER * 2 ** min(max(refusals, 1) - 1, 20))
    end = now + timedelta(seconds=min(max(answer.retry_after, 0.0), bound))
    return max(until, end) if until else end
