"""Scan of a page's source for attributes: spares searches of the tree for what is not there.

A search of the tree by a selector costs as much as one pass over the source, and few pages have what
is sought. The scan may report more than the tree has (in scripts, in comments), never less. In Python
it would cost more than it spares: every attribute is reported.
"""

from functools import partial
from typing import Final

import turbohtml

from trapline import native

DATED: Final = 1 << 0
"""An element is marked as the date of publication."""
CREDITED: Final = 1 << 1
"""An element is marked as the author."""
AUTHOR_LINK: Final = 1 << 2
DATE_CLASS: Final = 1 << 3
AUTHOR_CLASS: Final = 1 << 4
HIDDEN: Final = 1 << 5
LANDMARK_ID: Final = 1 << 6
GUTTER_CLASS: Final = 1 << 7
"""An element is called as the line numbers of code are."""
FOOTNOTE: Final = 1 << 8
"""A link is marked as one to a footnote."""
TYPED: Final = 1 << 9
"""An element is marked as something that tells the page's type."""
AUTHOR_RELS: Final = 0xFF << 16
"""How many links are marked as ones to the author, as far as eight bits can tell."""
LANDMARK_ROLES: Final = 0xFF << 24
"""How many elements are a header, a navigation or a footer by their role."""
EVERYTHING: Final = -1

# Each type that `hints` knows has one of them.
_TYPES: Final = (
    "article", "post", "product", "offer", "list", "page", "question", "answer", "comment",
    "business", "service", "howto", "event", "video", "re",
)  # fmt: skip
# Attribute, what its value may hold or, if it is that alone, be, and what that means. Letters of
# either case count, for names and some values may be written so. Without words the name is enough.
_RULES: Final = (
    ("itemprop", ("datepublished",), False, DATED),
    ("itemprop", ("author",), False, CREDITED),
    ("rel", ("author",), False, AUTHOR_RELS),
    ("href", ("/author",), False, AUTHOR_LINK),
    ("class", ("date", "publish", "posted"), False, DATE_CLASS),
    ("class", ("author", "byline", "username"), False, AUTHOR_CLASS),
    ("hidden", (), False, HIDDEN),
    ("aria-hidden", ("true",), False, HIDDEN),
    ("style", ("none", "hidden"), False, HIDDEN),
    ("role", ("banner", "navigation", "contentinfo"), False, LANDMARK_ROLES),
    (
        "id",
        ("header", "masthead", "nav", "navigation", "navbar", "menu", "footer", "colophon"),
        True,
        LANDMARK_ID,
    ),
    (
        "class",
        ("gutter", "lineno", "line-numbers", "hljs-ln", "lnt", "blob-num"),
        False,
        GUTTER_CLASS,
    ),
    ("class", ("footnote-ref",), False, FOOTNOTE),
    ("role", ("doc-noteref",), False, FOOTNOTE),
    ("rel", ("footnote",), False, FOOTNOTE),
    ("itemtype", _TYPES, False, TYPED),
)


def scan_attributes(source: str | bytes, /) -> int:
    """The flags of all attributes that a page can have; bytes are in UTF-8."""
    del source
    return EVERYTHING


def are_all(tree: turbohtml.Document, found: int, attribute_flags: int, counted: int) -> bool:
    """Whether so many elements, each written by itself, are all that a page has of what is counted.

    The highest count may be of more; and what a `select` shows is a copy of one of its options.
    """
    one = counted & -counted
    return attribute_flags & counted == found * one < counted and not tree.find_all(
        "selectedcontent"
    )


if native.available:
    scan_attributes = partial(native.library.seek, native.library.seeker(_RULES))
