"""Rate limit per API key: a token bucket that refills evenly over the minute."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from trapline.errors import LimitReached
from trapline.model import ApiKeyId

_MINUTE: Final = 60.0
_MAX_BUCKETS: Final = 100_000


@dataclass(slots=True)
class RateLimits:
    """The token buckets of one process. After a minute without a call, a bucket is full."""

    per_minute: int | None
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[ApiKeyId, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, key: ApiKeyId | None) -> None:
        """Take a token for one call of a key; LimitReached carries the seconds to wait."""
        if self.per_minute is None or key is None:
            return
        now = self.clock()
        tokens, at = self._buckets.pop(key, (float(self.per_minute), now))
        tokens = min(float(self.per_minute), tokens + (now - at) * self.per_minute / _MINUTE)
        wait = (1 - tokens) * _MINUTE / self.per_minute
        self._buckets[key] = (tokens - 1 if wait <= 0 else tokens, now)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        if wait > 0:
            raise LimitReached(
                f"Rate limit exceeded: {self.per_minute} requests a minute."
                f" Please retry after {max(1, round(wait))}s.",
                retry_after=wait,
            )
