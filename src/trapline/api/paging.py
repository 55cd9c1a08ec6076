"""Lists in pages: a cursor says where the last page ended, so that no page shifts under a reader."""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from fastapi import Query
from pydantic import BaseModel, Field

from trapline.errors import InvalidInput

T = TypeVar("T")
Row = TypeVar("Row")

MOST = 1000

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""What a cursor is made of; anything else would not reach the database in one piece."""

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


def cut(rows: Sequence[Row], most: int, place: Callable[[Row], Any]) -> str | None:
    """Return the cursor after `most` rows; the query asked for one more, to see whether it is there."""
    return encode(place(rows[most - 1])) if len(rows) > most else None


def encode(place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def decode(cursor: str | None, kind: type[T]) -> T | None:
    """Read a cursor; one that this list did not give is refused."""
    if cursor is None:
        return None
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise InvalidInput("The cursor is not one that this list gave.") from None
