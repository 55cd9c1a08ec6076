"""Cache of principals by the hash of their key, for ten seconds.

A cached principal only parametrises a statement. That statement, which does what the key is for,
checks in the database whether the key is still valid.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from trapline.db.tenancy import Principal

# Short, because a key's last use is noted when it is looked up in the database.
_TTL: Final = 10.0
_MAX_ENTRIES: Final = 10_000


@dataclass(slots=True)
class PrincipalCache:
    """The principals that this process has seen last."""

    clock: Callable[[], float] = time.monotonic
    _entries: OrderedDict[bytes | None, tuple[Principal, float]] = field(
        default_factory=OrderedDict
    )

    def put(self, token: str | None, principal: Principal) -> Principal:
        """Cache the principal of a key, or of requests without one."""
        self._entries[_hash(token)] = (principal, self.clock() + _TTL)
        if len(self._entries) > _MAX_ENTRIES:
            self._entries.popitem(last=False)
        return principal

    def get(self, token: str | None) -> Principal | None:
        principal, until = self._entries.get(_hash(token), (None, 0.0))
        return principal if self.clock() < until else None


def _hash(token: str | None) -> bytes | None:
    """Hash a key: the cache holds none in plain text."""
    return None if token is None else hashlib.sha256(token.encode()).digest()
