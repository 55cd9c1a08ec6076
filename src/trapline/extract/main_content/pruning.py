"""Cuts a tree down to the chosen blocks, so that the parser's own renderers can write it.

The tree is changed: whatever else is to be read of the page must be read before.
"""

from typing import Final

import numpy as np
import turbohtml
from msgspec.structs import replace

from trapline import native
from trapline.extract.html.outline import OTHER_NODE, TEXT_NODE, Flags, Outline, ints, tag_set
from trapline.extract.main_content.blocks import Blocks

# They have no text, and show something all the same.
MEDIA: Final = tag_set("img picture video audio iframe")
# Empty ones hold their place: a break, a rule, a cell of a table.
KEPT_EMPTY: Final = tag_set("br hr wbr tr td th thead tbody tfoot img source")
FRAME: Final = tag_set("html body")
_HALF: Final = 0.5


def prune(outline: Outline, blocks: Blocks, chosen: Flags) -> Outline:
    """Remove from the tree all but the chosen blocks and the pictures that stand among them.

    The outline that is returned finds only what is left.
    """
    code, last = outline.code, outline.last
    wanted = np.zeros(len(code), dtype=np.bool_)
    wanted[blocks.piece_row[chosen[blocks.piece_block]]] = True
    wanted |= _media_among(outline, blocks, chosen)
    running = np.concatenate(([0], np.cumsum(wanted)))
    needed = (running[last + 1] - running[:-1] > 0) | FRAME[code]
    needed[0] = True
    blank = code == TEXT_NODE
    blank[blocks.piece_row] = False
    droppable = ~needed & ~KEPT_EMPTY[code] & ~blank & (code != OTHER_NODE)
    above = needed & (code != TEXT_NODE)
    # An empty cell of a row that goes altogether goes with the row.
    gone = np.flatnonzero(droppable & above[outline.parent])
    for row in gone.tolist():
        outline.nodes[row].decompose()
    return outline.without_rows(gone)


def _media_among(outline: Outline, blocks: Blocks, chosen: Flags) -> Flags:
    """Pictures between two chosen blocks, or beside one in an element that is mostly chosen."""
    flags = MEDIA[outline.code]
    rows = np.flatnonzero(flags)
    if not len(rows) or not len(blocks):
        return np.zeros(len(flags), dtype=np.bool_)
    bounded = np.concatenate(([False], chosen, [False]))
    following = np.searchsorted(blocks.first, rows)
    before, after = bounded[following], bounded[following + 1]
    size = len(outline.code)
    all_words = np.concatenate(([0], np.cumsum(np.bincount(blocks.first, blocks.words, size))))
    kept = np.where(chosen, blocks.words, 0)
    kept_words = np.concatenate(([0], np.cumsum(np.bincount(blocks.first, kept, size))))
    total = all_words[outline.last + 1] - all_words[:-1]
    holder = outline.nearest_flagged(total > 0)[rows]
    part = (kept_words[outline.last[holder] + 1] - kept_words[holder]) / np.maximum(
        total[holder], 1
    )
    flags[rows] = (before & after) | ((before | after) & (part > _HALF))
    return flags


def open_templates(body: turbohtml.Element) -> None:
    """Put what is left of a template in its place: the renderer does not look into them."""
    for template in body.find_all("template"):
        for content in list(template.children):
            template.insert_after(*list(content.children))
        template.decompose()


def compiled_prune(outline: Outline, blocks: Blocks, chosen: Flags) -> Outline:
    left, starts = native.library.prune(
        outline.nodes, outline.code, outline.parent, outline.last, outline.by_code,
        blocks.words, blocks.first, blocks.piece_row, blocks.piece_block, chosen,
    )  # fmt: skip
    return replace(outline, by_code=ints(left), code_starts=starts)


if native.available:
    native.library.configure(
        {
            "media": MEDIA.tobytes(),
            "kept_empty": KEPT_EMPTY.tobytes(),
            "frame": FRAME.tobytes(),
        }
    )
    prune = compiled_prune
