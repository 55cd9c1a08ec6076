"""What becomes of a delivery that failed: a pure function of how long it has been failing."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

State = Literal["pending", "aside", "delivered", "dead"]

# For so long a failing delivery holds up those behind it; then they go on without it.
TURN: Final = timedelta(minutes=15)
ASIDE_EVERY: Final = timedelta(hours=1)
GIVE_UP: Final = timedelta(days=1)
_FIRST: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long deliveries are tried; tests are less patient."""

    first: timedelta = _FIRST
    longest: timedelta = _LONGEST
    turn: timedelta = TURN
    aside_every: timedelta = ASIDE_EVERY
    give_up: timedelta = GIVE_UP

    def after_failure(
        self, *, attempts: int, created_at: datetime, first_attempt_at: datetime, now: datetime
    ) -> tuple[State, datetime]:
        """Return the state after the attempt of this number failed, and when to try again."""
        if now - created_at >= self.give_up:
            return "dead", now
        if now - first_attempt_at >= self.turn:
            return "aside", now + self.aside_every
        # The exponent is bounded: nobody waits for 2 ** 1000 seconds, and timedelta cannot.
        return "pending", now + min(self.longest, self.first * 2 ** min(attempts - 1, 20))
