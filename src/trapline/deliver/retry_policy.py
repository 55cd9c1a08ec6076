"""The retry policy of deliveries: exponential backoff, then hourly, then dead."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

DeliveryState = Literal["pending", "aside", "delivered", "dead"]

# For so long a failing delivery blocks those behind it; then it is set aside.
BLOCKING_TIME: Final = timedelta(minutes=15)
ASIDE_EVERY: Final = timedelta(hours=1)
GIVE_UP: Final = timedelta(days=1)
_FIRST: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class DeliveryRetryPolicy:
    """The intervals; tests use shorter ones."""

    first: timedelta = _FIRST
    longest: timedelta = _LONGEST
    blocking_time: timedelta = BLOCKING_TIME
    aside_every: timedelta = ASIDE_EVERY
    give_up: timedelta = GIVE_UP

    def after_failure(
        self, *, attempts: int, created_at: datetime, first_attempt_at: datetime, now: datetime
    ) -> tuple[DeliveryState, datetime]:
        """Return the state after this attempt failed, and when to try again."""
        if now - created_at >= self.give_up:
            return "dead", now
        if now - first_attempt_at >= self.blocking_time:
            return "aside", now + self.aside_every
        # The exponent is bounded, because timedelta is.
        return "pending", now + min(self.longest, self.first * 2 ** min(attempts - 1, 20))
