"""A duty of maintenance: what it does, how often, and for how long at most."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from trapline.db.pool import Database


@dataclass(frozen=True, slots=True)
class Duty:
    """`work` returns how many things it did."""

    name: str
    work: Callable[[Database], Awaitable[int]]
    every: timedelta
    longest: timedelta = timedelta(minutes=5)
