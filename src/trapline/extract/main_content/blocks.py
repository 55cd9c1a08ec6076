"""The text of a page, cut into blocks: runs of inline text between block boundaries."""

from itertools import chain
from typing import Final

import numpy as np
from msgspec import Struct

from trapline import native
from trapline.extract.html.outline import (
    OTHER_NODE,
    TAG,
    TEXT_NODE,
    Flags,
    Ints,
    Outline,
    ints,
    tag_set,
)

# Their text is not shown, or is not text.
HIDDEN_TAGS: Final = tag_set(
    "head title script style iframe noframes noembed object svg canvas audio video textarea"
)
BLOCK_TAGS: Final = tag_set(
    "html body template noscript div p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead "
    "tbody tfoot tr td th article section main nav aside header footer address figure figcaption "
    "blockquote pre hr form fieldset legend label select option optgroup button details summary "
    "dialog menu center frameset"
)
_BOUNDARY: Final = "\x00"
_JOINTS: Final = ("", " ", _BOUNDARY)
_PARAGRAPH_BREAKS: Final = 2


class Blocks(Struct, frozen=True):
    """Blocks in document order; `piece_*` are the text nodes they are made of."""

    texts: list[str]
    shown: list[str]
    """The texts as they are shown: code keeps its own lines."""
    words: Ints
    owner: Ints
    """Row of the block-level element that a block stands in."""
    first: Ints
    """Row of its first text node that is not blank."""
    piece_row: Ints
    piece_block: Ints
    piece_size: Ints

    def __len__(self) -> int:
        return len(self.texts)


def read_blocks(outline: Outline) -> Blocks:
    code = outline.code
    rows = outline.by_code[slice(*outline.code_starts[TEXT_NODE : TEXT_NODE + 2])]
    rows = rows[outline.enclosing(np.flatnonzero(HIDDEN_TAGS[code]), rows) == 0]
    nodes = outline.nodes
    data = [nodes[row].data for row in rows.tolist()]
    # Most text nodes are the white space between tags: a gap in the numbering is all they leave.
    place = [number for number, text in enumerate(data) if not text.isspace()]
    data = list(map(data.__getitem__, place))
    rows = rows[place]
    block_level = BLOCK_TAGS[code] | (code == OTHER_NODE)
    owners = outline.nearest_flagged(block_level)[rows]
    starts, joints = _boundaries(outline, rows, owners, block_level, np.diff(place) > 1)
    page = "".join(chain.from_iterable(zip(joints, data, strict=True)))
    split = list(map(str.split, page.split(_BOUNDARY)[1:]))
    texts = list(map(" ".join, split))
    first = np.flatnonzero(starts)
    return Blocks(
        texts=texts,
        shown=_shown(outline, texts, rows, first),
        words=np.fromiter(map(len, split), np.intp, len(split)),
        owner=owners[first],
        first=rows[first],
        piece_row=rows,
        piece_block=np.cumsum(starts) - 1,
        piece_size=np.fromiter(map(len, data), np.intp, len(data)),
    )


def _shown(outline: Outline, texts: list[str], rows: Ints, first: Ints) -> list[str]:
    """The texts of blocks, but for code, which is written as it is from its first row to its last."""
    blocks = outline.rows_of("pre")
    if not len(blocks):
        return texts
    shown = texts.copy()
    starts, ends = rows[first], rows[np.append(first, len(rows))[1:] - 1]
    for number in np.flatnonzero(outline.enclosing(blocks, starts)).tolist():
        shown[number] = outline.raw_text(int(starts[number]), int(ends[number])).strip("\n")
    return shown


def _boundaries(
    outline: Outline, rows: Ints, owners: Ints, block_level: Flags, spaced: Flags
) -> tuple[Flags, list[str]]:
    """Whether each text node starts a block, and what stands before it in the joined text."""
    opened = np.cumsum(block_level)[rows]
    passed = np.diff(np.cumsum(outline.code == TAG["br"])[rows])
    starts = np.ones(len(rows), dtype=np.bool_)
    starts[1:] = (np.diff(owners) != 0) | (np.diff(opened) != 0) | (passed >= _PARAGRAPH_BREAKS)
    kinds = starts * 2
    kinds[1:][(spaced | (passed > 0)) & ~starts[1:]] = 1
    return starts, list(map(_JOINTS.__getitem__, kinds.tolist()))


def compiled_blocks(outline: Outline) -> Blocks:
    """The blocks that were read together with the outline."""
    texts, shown, *arrays = outline.blocks
    return Blocks(texts, shown, *map(ints, arrays))


if native.available:
    native.library.configure({"block": BLOCK_TAGS.tobytes(), "hidden": HIDDEN_TAGS.tobytes()})
    read_blocks = compiled_blocks
