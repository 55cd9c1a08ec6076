"""Id prefixes: the range of UUIDs that begin with some hexadecimal digits, and the only match in it."""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from trapline.errors import InvalidInput, NotFound

_DIGITS = 32
_PREFIX = re.compile(r"[0-9a-f]{4,32}")

Id = TypeVar("Id", bound=UUID)


class IdRange(NamedTuple):
    """The first and the last id with a prefix; a whole id is both."""

    low: UUID
    high: UUID


def id_range(prefix: str) -> IdRange:
    """Return the range of a prefix of at least four digits; dashes and case do not matter."""
    digits = prefix.strip().lower().replace("-", "")
    if not _PREFIX.fullmatch(digits):
        raise InvalidInput(f"{prefix!r} is not an id, nor its first four or more digits.")
    return IdRange(UUID(digits.ljust(_DIGITS, "0")), UUID(digits.ljust(_DIGITS, "f")))


def only_match(matches: Sequence[Id], prefix: str, what: str, hint: str = "") -> Id:
    """Return the one id of at most two that a query found; else say how to name one."""
    if not matches:
        raise NotFound(f"There is no {what} {prefix}{hint}.")
    if len(matches) > 1:
        raise InvalidInput(f"Several ids of a {what} begin with {prefix}; give more digits.")
    return matches[0]
