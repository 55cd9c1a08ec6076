"""Who asked a moment ago, by what they came with: enough to begin with, never to decide by.

What is remembered here says whom a statement is to be asked about. Whether a key still holds is
asked of the database each time, by the statement that does what the key is for.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from trapline.db.tenancy import Principal

# Short, since when a key was last used is noted where it is looked up by its hash.
_MOMENT: Final = 10.0
_MOST: Final = 10_000


@dataclass(slots=True)
class Acquaintances:
    """Those whom this process has met."""

    clock: Callable[[], float] = time.monotonic
    _met: OrderedDict[bytes | None, tuple[Principal, float]] = field(default_factory=OrderedDict)

    def meet(self, token: str | None, who: Principal) -> Principal:
        """Remember who came with a key, or without one."""
        self._met[_hash(token)] = (who, self.clock() + _MOMENT)
        if len(self._met) > _MOST:
            self._met.popitem(last=False)
        return who

    def find(self, token: str | None) -> Principal | None:
        """Return who came with this a moment ago."""
        who, until = self._met.get(_hash(token), (None, 0.0))
        return who if self.clock() < until else None


def _hash(token: str | None) -> bytes | None:
    """Keys themselves are not kept."""
    return None if token is None else hashlib.sha256(token.encode()).digest()
