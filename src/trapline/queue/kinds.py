"""Kinds of tasks: a name, a payload type, a handler and a retry policy."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from trapline.errors import InvalidInput, TooLarge
from trapline.queue.retry_policy import RetryPolicy

LARGEST_PAYLOAD = 1024 * 1024

Handler = Callable[[Any], Awaitable[Any]]
"""Takes a claimed Task; returns its result, or a TaskResult."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of task. `gate` is the default gate of its tasks."""

    name: str
    payload: type[Any]
    handler: Handler | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta = timedelta(minutes=5)
    # Whether the worker's store hook sees the results of this kind.
    stored: bool = False

    @property
    def gate(self) -> str:
        return f"kind:{self.name}"

    def encode(self, payload: Any) -> str:
        """Check a payload against its type and return its JSON."""
        try:
            value = payload if isinstance(payload, self.payload) else None
            if value is None:
                value = msgspec.convert(payload, self.payload)
            encoded = msgspec.json.encode(value)
        except (msgspec.ValidationError, TypeError) as error:
            raise InvalidInput(f"Not a payload of {self.name}: {error}") from None
        return check_json(encoded, f"The payload of {self.name}")


def check_json(encoded: bytes, what: str) -> str:
    """Return the JSON as text; refuse what PostgreSQL cannot store."""
    if len(encoded) > LARGEST_PAYLOAD:
        raise TooLarge(f"{what} has {len(encoded):,} bytes; the limit is {LARGEST_PAYLOAD:,}.")
    if b"\\u0000" in encoded:
        raise InvalidInput(f"{what} contains a NUL character, which PostgreSQL cannot hold.")
    return encoded.decode()


class Kinds(Mapping[str, Kind]):
    """The kinds that this process knows."""

    @classmethod
    def stored(cls) -> "Kinds":
        """Return kinds that accept any payload, for tasks whose payload was checked before."""
        return _Stored()

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[str, Kind] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: Kind) -> Kind:
        if kind.name in self._kinds:
            raise InvalidInput(f"There already is a kind named {kind.name!r}.")
        self._kinds[kind.name] = kind
        return kind

    def __getitem__(self, name: str) -> Kind:
        try:
            return self._kinds[name]
        except KeyError:
            raise InvalidInput(f"There is no kind of task named {name!r}.") from None

    def find(self, name: str | None) -> Kind | None:
        """Return a kind, or None if this process does not know it."""
        return None if name is None else self._kinds.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __contains__(self, name: object) -> bool:
        return name in self._kinds


class _Stored(Kinds):
    def __getitem__(self, name: str) -> Kind:
        return Kind(name, object)
