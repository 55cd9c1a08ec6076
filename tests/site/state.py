"""What happened since the last reset: counters that behaviours read, and faults from outside."""

from collections import Counter
from dataclasses import dataclass, field

from tests.site.faults import Fault


@dataclass(slots=True)
class State:
    """Everything that changes while the site runs, apart from its log."""

    visits: Counter[str] = field(default_factory=Counter)
    """How often each URL of a behaviour that remembers was asked for."""
    cached: dict[str, float] = field(default_factory=dict)
    """When the pretended CDN stored each URL."""
    faults: tuple[Fault, ...] = ()

    def visit(self, key: str) -> int:
        """Count a visit and return its number, beginning with 1."""
        self.visits[key] += 1
        return self.visits[key]

    def clear(self) -> None:
        self.visits.clear()
        self.cached.clear()
        self.faults = ()
