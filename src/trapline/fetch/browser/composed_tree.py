"""The composed tree of a page as HTML: shadow roots and same-origin frames in their places."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final
from urllib.parse import urlsplit

from trapline.fetch.browser.commands import Node

_ELEMENT, _TEXT, _COMMENT, _DOCUMENT, _DOCTYPE = 1, 3, 8, 9, 10
_VOID: Final = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
_RAW: Final = frozenset(("script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"))
_FRAMES: Final = frozenset(("iframe", "frame"))


def serialise(document: Node) -> str:
    """Return the HTML of a document with its shadow roots and frames of the same origin."""
    return "".join(_Serialiser(_origin(document.document_url)).children(document.children, ()))


class _Serialiser:
    def __init__(self, origin: str) -> None:
        self._origin = origin

    def children(self, nodes: Sequence[Node], slotted: Sequence[Node]) -> Iterator[str]:
        for node in nodes:
            yield from self._node(node, slotted)

    def _node(self, node: Node, slotted: Sequence[Node]) -> Iterator[str]:
        if node.node_type == _TEXT:
            yield escape(node.node_value, quote=False)
        elif node.node_type == _ELEMENT:
            yield from self._element(node, slotted)
        elif node.node_type == _DOCTYPE:
            yield f"<!DOCTYPE {node.node_name}>"

    def _element(self, node: Node, slotted: Sequence[Node]) -> Iterator[str]:
        name = node.local_name
        if name == "slot" and slotted:
            yield from self._slot(node, slotted)
            return
        if name in _FRAMES and node.content_document is not None:
            yield from self._frame(node.content_document)
            return
        yield f"<{name}{_attributes(node.attributes)}>"
        if name in _VOID:
            return
        if name in _RAW:
            yield "".join(child.node_value for child in node.children)
        else:
            yield from self._content(node, slotted)
        yield f"</{name}>"

    def _content(self, node: Node, slotted: Sequence[Node]) -> Iterator[str]:
        roots = [root for root in node.shadow_roots if root.shadow_root_type != "user-agent"]
        if roots:
            yield from self.children(roots[0].children, node.children)
        else:
            yield from self.children(node.children, slotted)

    def _slot(self, slot: Node, slotted: Sequence[Node]) -> Iterator[str]:
        """Yield the children of the host that belong into this slot, else the slot's own."""
        name = _attribute(slot, "name")
        nodes = [node for node in slotted if _attribute(node, "slot") == name]
        yield from self.children(nodes or slot.children, ())

    def _frame(self, document: Node) -> Iterator[str]:
        """Yield the body of a frame of the same origin; other frames belong to other sites."""
        if _origin(document.document_url) not in (self._origin, ""):
            return
        for html in document.children:
            for part in html.children:
                if part.local_name in {"body", "frameset"}:
                    yield "<div>"
                    yield from self.children(part.children, ())
                    yield "</div>"


def _attributes(pairs: Sequence[str]) -> str:
    named = zip(pairs[::2], pairs[1::2], strict=False)
    return "".join(f' {name}="{escape(value)}"' for name, value in named)


def _attribute(node: Node, name: str) -> str:
    named = dict(zip(node.attributes[::2], node.attributes[1::2], strict=False))
    return named.get(name, "")


def _origin(url: str) -> str:
    """Return scheme and host of a URL; empty for frames that a script fills (`about:srcdoc`)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
