"""Line breaks within what our converters write.

The parser's renderer (turbohtml 1.15.4) remembers where a part that a converter gets had its last break, and
may take a later part for one that ends there: its last three letters are lost. So such breaks are
written by us, as the renderer writes them.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

import turbohtml

_Beyond = Callable[[turbohtml.Node], Iterable[turbohtml.Node]]

BREAK: Final = "line-break"
_BEFORE: Final[_Beyond] = attrgetter("previous_siblings")
_AFTER: Final[_Beyond] = attrgetter("next_siblings")
_ONE_LINE: Final = "h1,h2,h3,h4,h5,h6,th"
_CELL: Final = "td"
_BLOCK: Final = "h1,h2,h3,h4,h5,h6,p,li,div,dd,td,th,summary"
# Converters do not see what is in it.
_AS_IT_IS: Final = "pre"


def mark_breaks(breaks: Iterable[turbohtml.Element], converted: tuple[str, ...]) -> None:
    """Rename breaks that stand in elements which are converted; those at a link's edge leave it."""
    holders = ",".join(converted)
    # All of them before any is moved.
    for found in [one for one in breaks if one.closest(holders) is not None]:
        if found.closest(_AS_IT_IS) is not None:
            continue
        _leave_link(found)
        block = found.closest(_BLOCK)
        if block is not None and _is_at_edge(found, block, _AFTER):
            found.decompose()
        elif found.closest(_ONE_LINE) is not None:
            found.replace_with(turbohtml.Text(" "))
        elif found.closest(holders) is not None:
            _trim(found)
            found.tag = BREAK


def _leave_link(found: turbohtml.Element) -> None:
    link = found.closest("a")
    if link is not None and _is_at_edge(found, link, _AFTER):
        link.insert_after(found)
    elif link is not None and _is_at_edge(found, link, _BEFORE):
        link.insert_before(found)


def write_break(element: turbohtml.Element, rendered: str) -> str:
    """Cells have a tag for it, since they are one line."""
    del rendered
    return "  \n" if element.closest(_CELL) is None else "<br>"


def _trim(found: turbohtml.Element) -> None:
    """Space around a break is not seen."""
    before, after = found.previous_sibling, found.next_sibling
    if isinstance(before, turbohtml.Text):
        before.data = before.data.rstrip()
    if isinstance(after, turbohtml.Text):
        after.data = after.data.lstrip()


def _is_at_edge(node: turbohtml.Node, within: turbohtml.Element, beyond: _Beyond) -> bool:
    """Whether nothing is seen between a node and the end, or the beginning, of an element."""
    while node != within:
        if not _is_blank(beyond(node)) or node.parent is None:
            return False
        node = node.parent
    return True


def _is_blank(nodes: Iterable[turbohtml.Node]) -> bool:
    return all(isinstance(node, turbohtml.Text) and not node.data.strip() for node in nodes)
