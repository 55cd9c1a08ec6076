"""A JSON result by the caller's JSON schema, filled from structured data alone, with no model."""

import re
from collections.abc import Iterator, Mapping

from trapline.extract.metadata.fields import PRODUCT_TYPES, article_fields, product_fields
from trapline.extract.metadata.items import Item, Value, text_of
from trapline.extract.metadata.price import number_in
from trapline.extract.metadata.structured_data import StructuredData
from trapline.model import Metadata

Schema = Mapping[str, object]
_MAX_DEPTH = 8
_MAX_LIST = 1_000
_TRUE = ("true", "yes", "1", "instock", "limitedavailability", "onlineonly")
# Other words for the same thing, each by the schema.org name it is looked up under.
_SYNONYMS = {
    "title": ("name", "headline"),
    "headline": ("headline", "name", "title"),
    "name": ("name", "headline", "title"),
    "summary": ("description", "abstract"),
    "image": ("image", "images", "photo", "thumbnailurl"),
    "images": ("image", "images", "photo"),
    "imageurl": ("image", "images"),
    "link": ("url",),
    "cost": ("price",),
    "price": ("price", "lowprice"),
    "currency": ("pricecurrency", "currency"),
    "instock": ("availability",),
    "available": ("availability",),
    "rating": ("ratingvalue", "aggregaterating"),
    "value": ("ratingvalue",),
    "count": ("reviewcount", "ratingcount"),
    "ratingvalue": ("ratingvalue",),
    "reviewcount": ("reviewcount", "ratingcount"),
    "reviews": ("review", "reviews"),
    "published": ("datepublished",),
    "publishedat": ("datepublished",),
    "publishdate": ("datepublished",),
    "publisheddate": ("datepublished",),
    "publicationdate": ("datepublished",),
    "date": ("datepublished", "startdate", "dateposted", "uploaddate"),
    "updated": ("datemodified",),
    "updatedat": ("datemodified",),
    "tags": ("keywords",),
    "section": ("articlesection",),
    "company": ("hiringorganization", "name", "publisher"),
    "ingredients": ("recipeingredient", "ingredients"),
    "instructions": ("recipeinstructions",),
    "servings": ("recipeyield",),
    "phone": ("telephone",),
    "sitename": ("publisher", "sitename"),
}
# A price stands in an offer and a score in a rating; people ask for them on the thing itself.
_OWN = ("name", "url", "description", "image")
_INSIDE = ("offers", "aggregateRating", "priceSpecification", "address", "brand", "baseSalary")


def fill(schema: Schema, structured: StructuredData, metadata: Metadata) -> dict[str, object]:
    """What the page's structured data has for each property of a schema; absent ones are left out.

    Types are converted to what the schema asks; what cannot be converted is left out too.
    """
    return _Filler(schema, structured, metadata).whole()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class _Filler:
    def __init__(self, schema: Schema, structured: StructuredData, metadata: Metadata) -> None:
        self._root = schema
        self._items = structured.items
        self._page = _page_item(structured, metadata)

    def whole(self) -> dict[str, object]:
        schema = self._resolved(self._root)
        items = sorted(self._items, key=lambda item: -self._fit(schema, item))
        found = self._object(schema, (*items, self._page), _MAX_DEPTH)
        return found or {}

    def _fit(self, schema: Schema, item: Item) -> int:
        """How many of a schema's properties an item can give."""
        return sum(any(_candidates(item, name)) for name in _properties(schema))

    def _resolved(self, schema: object) -> Schema:
        for _ in range(_MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return {}
            if isinstance(reference := schema.get("$ref"), str):
                schema = _at(self._root, reference)
            elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
                schema = _first_real(choices)
            else:
                return schema
        return {}

    def _object(
        self, schema: Schema, items: tuple[Item, ...], depth: int
    ) -> dict[str, object] | None:
        found: dict[str, object] = {}
        for name, raw in _properties(schema).items():
            wanted = self._resolved(raw)
            value = self._property(name, wanted, items, depth - 1) if depth > 0 else None
            if value is not None:
                found[name] = value
        return found or None

    def _property(self, name: str, wanted: Schema, items: tuple[Item, ...], depth: int) -> object:
        for item in items:
            for values in _candidates(item, name):
                if (value := self._value(wanted, values, depth)) is not None:
                    return value
        named = self._named(name)
        return self._value(wanted, named, depth) if named else None

    def _named(self, name: str) -> tuple[Value, ...]:
        """Items whose type a property is called after: `product`, `products`, `job_posting`."""
        plain = _plain(name)
        names = {plain, plain.removesuffix("s"), plain.removesuffix("es")}
        if "product" in names:
            names |= {_plain(kind) for kind in PRODUCT_TYPES}
        return tuple(
            item for item in self._items if any(_plain(kind) in names for kind in item.types)
        )

    def _value(self, wanted: Schema, values: tuple[Value, ...], depth: int) -> object:
        if not values or depth <= 0:
            return None
        kind = _kind(wanted)
        if kind == "array":
            inner = self._resolved(wanted.get("items"))
            made = (self._value(inner, (value,), depth - 1) for value in values[:_MAX_LIST])
            return [value for value in made if value is not None] or None
        if kind == "object":
            items = tuple(value for value in values if isinstance(value, Item))
            if "properties" not in wanted:
                return items[0].as_json() if items else None
            return self._object(wanted, items[:1], depth)
        scalars = (_scalar(kind, wanted, value) for value in values)
        return next((scalar for scalar in scalars if scalar is not None), None)


def _properties(schema: Schema) -> Mapping[str, object]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), None)
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _at(root: Schema, reference: str) -> object:
    """What a reference such as `#/$defs/Offer` points at."""
    found: object = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _first_real(choices: object) -> object:
    options = choices if isinstance(choices, list) else []
    return next((o for o in options if isinstance(o, Mapping) and o.get("type") != "null"), None)


def _candidates(item: Item, name: str) -> Iterator[tuple[Value, ...]]:
    """Every value of an item that a property of some name may mean, likeliest first."""
    plain = _plain(name)
    wanted = (plain, *_SYNONYMS.get(plain, ()))
    by_plain = {_plain(known): values for known, values in item.properties.items()}
    yield from (by_plain[candidate] for candidate in wanted if candidate in by_plain)
    for inside in (inside for key in _INSIDE for inside in item.items(key)):
        for known, values in inside.properties.items():
            if _plain(known) in wanted and known not in _OWN:
                yield values


def _scalar(kind: str, wanted: Schema, value: Value) -> object:
    text = text_of(value)
    if text is None:
        return None
    if kind == "boolean":
        return value if isinstance(value, bool) else _plain(text.rpartition("/")[2]) in _TRUE
    if kind in ("number", "integer"):
        number = number_in(text)
        return int(number) if kind == "integer" and number is not None else number
    if kind != "string":
        return None
    choices = wanted.get("enum")
    if not isinstance(choices, list):
        return text
    short = _plain(text.rpartition("/")[2])
    return next(
        (c for c in choices if isinstance(c, str) and _plain(c) in (short, _plain(text))), None
    )


def _page_item(structured: StructuredData, metadata: Metadata) -> Item:
    """What the meta tags say, as an item that comes last."""
    known = {
        "name": metadata.title,
        "headline": metadata.headline or metadata.title,
        "description": metadata.description,
        "author": metadata.author,
        "datePublished": metadata.published,
        "dateModified": metadata.modified,
        "inLanguage": metadata.language,
        "language": metadata.language,
        "publisher": metadata.site_name,
        "url": metadata.canonical,
    }
    properties: dict[str, tuple[Value, ...]] = {n: (v,) for n, v in known.items() if v}
    if metadata.keywords:
        properties["keywords"] = metadata.keywords
    for fields in (product_fields(structured), article_fields(structured, metadata)):
        for name, value in (fields or {}).items():
            if isinstance(value, str | int | float):
                properties.setdefault(name, (value,))
    return Item(("WebPage",), properties, source="meta")
