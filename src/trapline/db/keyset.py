"""Keyset pagination: a list reads the rows after a key, in one of its sort orders.

Each order has a named query of its own, so that each reads along its own index.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from trapline.db.connection import Connection

Row = TypeVar("Row")
Sort = TypeVar("Sort", bound=str)

# The types of keys: a value outside these bounds would be an error in the database.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Text = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Start:
    """The key before the first row of an order, and the type of all keys of that order."""

    key: Any
    type: Any


FIRST_ID: Final = Start(UUID(int=0), UUID)
LAST_ID: Final = Start(UUID(int=2**128 - 1), UUID)
FIRST_NUMBER: Final = Start(0, Number)
LAST_NUMBER: Final = Start(2**63 - 1, Number)
FIRST_TIME: Final = Start((EARLIEST, FIRST_ID.key), tuple[Moment, UUID])
LAST_TIME: Final = Start((LATEST, LAST_ID.key), tuple[Moment, UUID])
FIRST_NAME: Final = Start("", Text)
LAST_ROW: Final = Start((LATEST, LAST_NUMBER.key), tuple[Moment, Number])


@dataclass(frozen=True, slots=True)
class Order(Generic[Row]):
    """A sort order. `parameters` are the arguments through which `query` takes the key to go on from."""

    query: Callable[..., Awaitable[list[Row]]]
    parameters: tuple[str, ...]
    key: Callable[[Row], Any]
    start: Start

    async def read(
        self, conn: Connection, filters: Mapping[str, Any], *, after: Any = None, most: int
    ) -> list[Row]:
        """Return the next rows after a key, or the first ones."""
        key = self.start.key if after is None else after
        values = (key,) if len(self.parameters) == 1 else key
        position = dict(zip(self.parameters, values, strict=True))
        return await self.query(conn, **position, **filters, most=most)


@dataclass(frozen=True, slots=True)
class KeysetList(Generic[Sort, Row]):
    """The rows that the filters select, in any of the orders."""

    orders: Mapping[Sort, Order[Row]]
    filters: Mapping[str, Any]

    async def read(
        self, conn: Connection, sort: Sort, *, after: Any = None, most: int
    ) -> list[Row]:
        """Return the next rows after a key, or the first ones."""
        return await self.orders[sort].read(conn, self.filters, after=after, most=most)
