"""The one normal form of structured data: typed items with properties, as schema.org has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a page describes.

    Types and properties go by their short names (`Product`, `offers`); each property has its
    values in the order of the page. `source` is json-ld, microdata, rdfa or opengraph.
    """

    types: tuple[str, ...]
    properties: Mapping[str, tuple["Value", ...]] = field(default_factory=dict)
    id: str | None = None
    source: str = "json-ld"

    def is_a(self, *names: str) -> bool:
        return not set(names).isdisjoint(self.types)

    def values(self, *names: str) -> tuple["Value", ...]:
        """The values of the first of some properties that has any."""
        return next((self.properties[name] for name in names if self.properties.get(name)), ())

    def items(self, *names: str) -> tuple["Item", ...]:
        return tuple(value for value in self.values(*names) if isinstance(value, Item))

    def text(self, *names: str) -> str | None:
        """The first value of some properties as text; of an item, its name or address."""
        return next(filter(None, map(text_of, self.values(*names))), None)

    def as_json(self) -> dict[str, object]:
        """The item as plain JSON: one value as itself, several as a list."""
        found: dict[str, object] = {}
        if self.types:
            found["@type"] = self.types[0] if len(self.types) == 1 else list(self.types)
        if self.id:
            found["@id"] = self.id
        for name, values in self.properties.items():
            plain = [value.as_json() if isinstance(value, Item) else value for value in values]
            found[name] = plain[0] if len(plain) == 1 else plain
        return found


Value = Scalar | Item


def text_of(value: Value) -> str | None:
    """A value as one line of text."""
    if isinstance(value, Item):
        return value.text("name", "url", "contentUrl", "@value") or value.id
    text = " ".join(str(value).split())
    return text or None


def texts_of(values: Iterable[Value]) -> tuple[str, ...]:
    """The distinct texts of some values, in order."""
    return tuple(dict.fromkeys(text for value in values if (text := text_of(value))))
