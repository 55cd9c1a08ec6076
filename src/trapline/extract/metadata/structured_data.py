"""Structured data of a page, whatever its syntax, as items: JSON-LD, microdata, RDFa, OpenGraph."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import turbohtml
from turbohtml.extract import MicrodataItem, RdfaItem

from trapline.extract.metadata import jsonld
from trapline.extract.metadata.items import Item, Value

MAX_ITEMS = 5_000
_MAX_DEPTH = 12
_MAX_VALUES = 500
# OpenGraph and its product and article vocabularies, by the schema.org property they stand for.
_OPEN_GRAPH = {
    "og:title": "name",
    "og:description": "description",
    "og:url": "url",
    "og:image": "image",
    "og:site_name": "publisher",
    "og:video": "video",
    "og:audio": "audio",
    "article:author": "author",
    "article:published_time": "datePublished",
    "article:modified_time": "dateModified",
    "article:section": "articleSection",
    "article:tag": "keywords",
    "book:isbn": "isbn",
    "product:brand": "brand",
    "product:availability": "availability",
    "og:availability": "availability",
    "product:retailer_item_id": "sku",
    "product:category": "category",
    "product:color": "color",
    "product:condition": "itemCondition",
    "product:price:amount": "price",
    "og:price:amount": "price",
    "product:price:currency": "priceCurrency",
    "og:price:currency": "priceCurrency",
}
_OFFER = ("price", "priceCurrency", "availability", "itemCondition")


@dataclass(frozen=True, slots=True)
class StructuredData:
    """Everything that a page describes, richest syntax first."""

    items: tuple[Item, ...] = ()

    def of_type(self, *names: str) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.is_a(*names))

    def as_json(self) -> dict[str, object]:
        """The items as plain JSON, by the syntax that they were found in."""
        found: dict[str, list[object]] = {}
        for item in self.items:
            found.setdefault(item.source, []).append(item.as_json())
        return dict(found)


def read_structured(
    tree: turbohtml.Document, url: str, nodes: list[jsonld.Node] | None = None
) -> StructuredData:
    """Read all of a page's structured data. `nodes` is its JSON-LD, if it is already read."""
    reader = _Reader(jsonld.read_nodes(tree) if nodes is None else nodes)
    items = reader.top_items()
    items += [reader.marked_up(item, _MAX_DEPTH) for item in _marked_up(tree, url)]
    if graph := _open_graph(tree):
        items.append(graph)
    return StructuredData(tuple(item for item in items if item.types or item.properties))


def _marked_up(tree: turbohtml.Document, url: str) -> list[MicrodataItem | RdfaItem]:
    found: list[MicrodataItem | RdfaItem] = []
    try:
        # A look at one attribute is much cheaper than the walk that follows.
        if tree.select_one("[itemscope]"):
            found += tree.microdata(url or None)
        if tree.select_one("[typeof]"):
            found += tree.rdfa(url or None)
    except (RecursionError, ValueError):
        # Items nested by the hundred describe nothing.
        return found
    return found[:MAX_ITEMS]


class _Reader:
    """Builds items within one budget, so that references in a circle or a web end."""

    def __init__(self, nodes: list[jsonld.Node]) -> None:
        self._nodes = nodes
        self._left = MAX_ITEMS
        self._by_id = {
            node["@id"]: node
            for node in nodes
            if isinstance(node.get("@id"), str) and len(node) > 1
        }

    def top_items(self) -> list[Item]:
        return [self._item(node, (), _MAX_DEPTH) for node in self._nodes]

    def _item(self, node: jsonld.Node, within: tuple[object, ...], depth: int) -> Item:
        self._left -= 1
        identity = node.get("@id")
        properties: dict[str, tuple[Value, ...]] = {}
        for name, raw in node.items():
            if not name.startswith("@"):
                values = tuple(self._values(raw, (*within, identity), depth - 1))
                if values:
                    properties[jsonld.local_name(name)] = values
        return Item(
            jsonld.types_of(node), properties, identity if isinstance(identity, str) else None
        )

    def _values(self, raw: object, within: tuple[object, ...], depth: int) -> Iterable[Value]:
        if isinstance(raw, list):
            for part in raw[:_MAX_VALUES]:
                yield from () if isinstance(part, list) else self._values(part, within, depth)
        elif isinstance(raw, dict):
            if "@value" in raw or "@list" in raw:
                yield from self._values(raw.get("@value", raw.get("@list")), within, depth - 1)
            elif depth > 0 and self._left > 0:
                yield self._referenced(raw, within, depth)
        elif isinstance(raw, str | bool | int) or (isinstance(raw, float) and math.isfinite(raw)):
            yield raw

    def _referenced(self, raw: jsonld.Node, within: tuple[object, ...], depth: int) -> Value:
        identity = raw.get("@id")
        if len(raw) == 1 and isinstance(identity, str):
            target = self._by_id.get(identity)
            if target is None or identity in within:
                return identity
            raw = target
        return self._item(raw, within, depth)

    def marked_up(self, raw: MicrodataItem | RdfaItem, depth: int) -> Item:
        """An item of microdata or RDFa."""
        self._left -= 1
        is_microdata = isinstance(raw, MicrodataItem)
        types = (raw.type or "").split() if isinstance(raw, MicrodataItem) else raw.type
        properties: dict[str, tuple[Value, ...]] = {}
        for name, values in raw.properties.items():
            kept = tuple(self._marked_values(values[:_MAX_VALUES], depth))
            if kept:
                properties[jsonld.local_name(name)] = kept
        identity = raw.id if isinstance(raw, MicrodataItem) else raw.resource
        source = "microdata" if is_microdata else "rdfa"
        return Item(tuple(map(jsonld.local_name, types)), properties, identity, source)

    def _marked_values(
        self, values: Iterable[str | MicrodataItem | RdfaItem], depth: int
    ) -> Iterable[Value]:
        for value in values:
            if isinstance(value, str):
                if text := " ".join(value.split()):
                    yield text
            elif depth > 0 and self._left > 0:
                yield self.marked_up(value, depth - 1)


def _open_graph(tree: turbohtml.Document) -> Item | None:
    found: dict[str, tuple[Value, ...]] = {}
    kind = ""
    for meta in tree.find_all("meta")[:_MAX_VALUES]:
        key = (meta.attr("property") or meta.attr("name") or "").lower()
        content = (meta.attr("content") or "").strip()
        if key == "og:type":
            kind = content.lower()
        elif content and (name := _OPEN_GRAPH.get(key)):
            found[name] = (*found.get(name, ()), content)
    if not found:
        return None
    return Item((_type_of(kind, found),), _with_offer(found), source="opengraph")


def _type_of(kind: str, found: Mapping[str, object]) -> str:
    if "product" in kind or "price" in found:
        return "Product"
    names = {"article": "Article", "book": "Book", "profile": "Person", "website": "WebSite"}
    return names.get(kind.partition(".")[0], "VideoObject" if "video" in kind else "WebPage")


def _with_offer(found: dict[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
    """A price belongs to an offer, as it does in schema.org."""
    offer = {name: found.pop(name)[:1] for name in _OFFER if name in found}
    if offer:
        found["offers"] = (Item(("Offer",), offer, source="opengraph"),)
    return found
