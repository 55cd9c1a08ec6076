"""How often a key may call."""

from uuid import UUID

import pytest

from trapline.api.rate_limit import RateLimits
from trapline.errors import LimitReached
from trapline.model import ApiKeyId

ONE, OTHER = ApiKeyId(UUID(int=1)), ApiKeyId(UUID(int=2))


def test_a_key_waits_until_its_bucket_has_a_token_again() -> None:
    now = [0.0]
    limits = RateLimits(6, clock=lambda: now[0])
    for _ in range(6):
        limits.take(ONE)
    with pytest.raises(LimitReached, match="retry after 10s") as refused:
        limits.take(ONE)
    assert refused.value.retry_after == pytest.approx(10)
    limits.take(OTHER)
    now[0] = 10.1
    limits.take(ONE)
    with pytest.raises(LimitReached):
        limits.take(ONE)
    now[0] = 1000
    for _ in range(6):
        limits.take(ONE)


def test_without_a_limit_or_a_key_nothing_is_counted() -> None:
    for limits, key in ((RateLimits(None), ONE), (RateLimits(1), None)):
        for _ in range(100):
            limits.take(key)
