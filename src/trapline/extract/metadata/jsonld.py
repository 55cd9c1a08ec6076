"""JSON-LD as found in the wild: graphs, arrays, blocks that are not quite JSON."""

import json
import re
from collections.abc import Iterable, Iterator

import msgspec
import turbohtml

Node = dict[str, object]
TYPE = "application/ld+json"
MAX_NODES = 5_000
_MAX_DEPTH = 24
_MAX_BLOCK = 4_000_000
_MAX_MENDED = 300_000
_WRAPPING = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/)")
_WRAPPED = re.compile(r"(?:-->|//\s*\]\]>|\]\]>|/\*\s*\]\]>\s*\*/|;)\s*$")
# Strings are matched first, so that what looks like a comment or a comma inside one is kept.
_NOISE = re.compile(r'("(?:[^"\\]|\\.)*+")|/\*.{0,300}?\*/|(?<!:)//[^\n]*|,(?=\s*[}\]])', re.DOTALL)
_PREFIX = re.compile(r"^(?:https?://(?:www\.)?schema\.org/|schema:)", re.IGNORECASE)


def read_nodes(tree: turbohtml.Document) -> list[Node]:
    """Every top-level node of a page's JSON-LD, graphs and arrays laid flat."""
    return nodes_of(read_scripts(tree))


def read_scripts(tree: turbohtml.Document) -> list[turbohtml.Element]:
    """The elements that have a page's JSON-LD."""
    return [
        script
        for script in tree.find_all("script")
        if (kind := script.attr("type")) and kind.strip().lower().startswith(TYPE)
    ]


def nodes_of(scripts: Iterable[turbohtml.Element]) -> list[Node]:
    """As `read_nodes`, of elements that were found."""
    nodes: list[Node] = []
    for script in scripts:
        nodes.extend(_flatten(decode(script.text[:_MAX_BLOCK]), _MAX_DEPTH))
        if len(nodes) >= MAX_NODES:
            break
    return nodes[:MAX_NODES]


def decode(text: str) -> object:
    """The JSON of a block, after mending what people get wrong; None when it cannot be read."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return _decode_mended(text)


def _decode_mended(text: str) -> object:
    text = _WRAPPED.sub("", _WRAPPING.sub("", text[:_MAX_MENDED])).strip()
    for candidate in (text, _NOISE.sub(lambda match: match.group(1) or "", text)):
        try:
            # What follows a first whole value is dropped; raw line breaks in strings are allowed.
            value: object = json.JSONDecoder(strict=False).raw_decode(candidate)[0]
        except (ValueError, RecursionError):
            continue
        return value
    return None


def local_name(name: str) -> str:
    """A type or property without the schema.org prefix it may carry."""
    return _PREFIX.sub("", name)


def types_of(node: Node) -> tuple[str, ...]:
    """The types of a node by their short names."""
    declared = node.get("@type")
    names = declared if isinstance(declared, list) else [declared]
    return tuple(local_name(name) for name in names if isinstance(name, str))


def _flatten(value: object, depth: int) -> Iterator[Node]:
    if depth == 0:
        return
    if isinstance(value, list):
        for part in value:
            yield from _flatten(part, depth - 1)
    elif isinstance(value, dict):
        graph = value.get("@graph")
        if graph is None or len(value) > 2:  # noqa: PLR2004 - more than @context and @graph
            yield value
        yield from _flatten(graph, depth - 1)
