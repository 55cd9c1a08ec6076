"""What a page says of itself in its head: meta tags, links, titles and JSON-LD, each looked at once."""

from typing import Final, NamedTuple

import turbohtml
from msgspec import Struct

from trapline.extract.metadata import jsonld

_MAX_TAGS: Final = 2_000
# Of the links in a page's head those that are looked at.
_TELLING: Final = frozenset(
    ("canonical", "alternate", "icon", "apple-touch-icon", "apple-touch-icon-precomposed")
)


class Meta(NamedTuple):
    """A meta tag: two of its names, and what it says."""

    name: str | None
    about: str | None
    """Its `property`, which Open Graph uses."""
    content: str | None
    tag: turbohtml.Element


class Head(Struct, frozen=True):
    titles: list[turbohtml.Element]
    metas: list[Meta]
    links: dict[str, list[turbohtml.Element]]
    """Those that tell of the page, by what they are to it."""
    scripts: list[turbohtml.Element]
    """Those with JSON-LD."""
    nodes: list[jsonld.Node]
    """What these say."""


def read_head(tree: turbohtml.Document) -> Head:
    scripts = jsonld.read_scripts(tree)
    metas = [
        Meta(meta.attr("name"), meta.attr("property"), meta.attr("content"), meta)
        for meta in tree.find_all("meta")[:_MAX_TAGS]
    ]
    nodes = jsonld.nodes_of(scripts) if scripts else []
    return Head(tree.find_all("title"), metas, _telling_links(tree), scripts, nodes)


def _telling_links(tree: turbohtml.Document) -> dict[str, list[turbohtml.Element]]:
    found: dict[str, list[turbohtml.Element]] = {}
    for link in tree.find_all("link"):
        for rel in (link.attr("rel") or "").lower().split():
            if rel in _TELLING:
                found.setdefault(rel, []).append(link)
    return found
