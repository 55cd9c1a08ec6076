"""Keyset pagination of the API's lists: an opaque cursor holds the key of the last row of a page.

A page does not shift while rows are added before it.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from fastapi import Query
from pydantic import BaseModel, Field

from trapline.db.connection import Connection
from trapline.db.keyset import KeysetList, Order
from trapline.errors import InvalidInput

T = TypeVar("T")
Row = TypeVar("Row")
Sort = TypeVar("Sort", bound=str)

MOST = 1000

Cursor = Annotated[
    str | None, Query(max_length=500, description="`next` of the page before; none for the first.")
]
Most = Annotated[int, Query(alias="limit", ge=1, le=MOST, description="Items in a page, at most.")]


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: Annotated[
        str | None, Field(description="Cursor of the next page; null when this is the last one.")
    ]


async def read_page(
    conn: Connection, rows: KeysetList[Sort, Row], sort: Sort, cursor: str | None, most: int
) -> tuple[list[Row], str | None]:
    """Return the rows of one page, and the cursor of the next page."""
    return await read_order(conn, rows.orders[sort], rows.filters, cursor, most)


async def read_order(
    conn: Connection, order: Order[Row], filters: Mapping[str, Any], cursor: str | None, most: int
) -> tuple[list[Row], str | None]:
    """Return the rows of one page of a list with one order, and the cursor of the next page."""
    rows = await order.read(conn, filters, after=decode(cursor, order.start.type), most=most + 1)
    following = encode(order.key(rows[most - 1])) if len(rows) > most else None
    return rows[:most], following


def encode(key: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def decode(cursor: str | None, key_type: type[T]) -> T | None:
    """Return the key in a cursor; a cursor of another list or order is InvalidInput."""
    if cursor is None:
        return None
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(data, type=key_type)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise InvalidInput(
            "This list did not issue that cursor. Use `next` of one of its pages."
        ) from None
