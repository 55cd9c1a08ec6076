"""Gates: they pace tasks across all processes and machines."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.errors import InvalidInput
from trapline.queue.sql import gates as queries
from trapline.queue.sql.gates import GateRow

LONGEST_NAME = 512

T = TypeVar("T", int, timedelta, datetime)


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate by name, with the gap and bound of a new gate; `lane_…` are those of one job."""

    name: str
    gap: timedelta | None = None
    bound: int | None = None
    lane_gap: timedelta | None = None
    lane_bound: int | None = None

    def row(
        self,
    ) -> tuple[str | None, timedelta | None, int | None, timedelta | None, int | None]:
        return (self.name, self.gap, self.bound, self.lane_gap, self.lane_bound)


class GateChange(Struct, frozen=True, gc=False):
    """A change of a gate's pace that an attempt causes, written in the finishing transaction."""

    gap: timedelta | None = None
    pressure: int | None = None
    not_before: datetime | None = None

    def and_also(self, other: "GateChange | None") -> "GateChange":
        """Return the slower of two changes of one gate, field by field."""
        if other is None:
            return self
        return GateChange(
            _larger(self.gap, other.gap),
            _larger(self.pressure, other.pressure),
            _larger(self.not_before, other.not_before),
        )


async def set_gate(
    conn: Connection,
    name: str,
    *,
    gap: timedelta = timedelta(),
    floor: timedelta = timedelta(),
    bound: int | None = None,
) -> GateRow:
    """Create or change a gate. Workers follow within two seconds."""
    check(Gate(name, gap, bound))
    row = await queries.set_gate(conn, name=name, gap=gap, floor=floor, bound=bound)
    if row is None:
        raise InvalidInput(f"The gate {name!r} cannot be set.")
    return row


def check(gate: Gate) -> None:
    """Refuse a gate without a name, or with values that would let no task through."""
    if not 0 < len(gate.name) <= LONGEST_NAME:
        raise InvalidInput(f"A gate's name has 1 to {LONGEST_NAME} characters.")
    for gap in (gate.gap, gate.lane_gap):
        if gap is not None and gap < timedelta():
            raise InvalidInput("A gate's gap cannot be negative.")
    for bound in (gate.bound, gate.lane_bound):
        if bound is not None and bound < 1:
            raise InvalidInput("A gate lets at least one task through: its bound is 1 or more.")


def _larger(one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
