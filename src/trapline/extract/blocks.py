"""The text of a page, cut into blocks: runs of inline text between block boundaries."""

from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter
from typing import Final

import numpy as np

from trapline.extract.outline import (
    OTHER_NODE,
    TAG,
    TEXT_NODE,
    Flags,
    Ints,
    Outline,
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


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks in document order; `piece_*` are the text nodes they are made of."""

    texts: list[str]
    split: list[list[str]]
    """The same, as words between white space."""
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
    rows = np.flatnonzero(code == TEXT_NODE)
    rows = rows[outline.enclosing(np.flatnonzero(HIDDEN_TAGS[code]), rows) == 0]
    data = list(map(attrgetter("data"), map(outline.nodes.__getitem__, rows.tolist())))
    size = np.fromiter(map(len, map(str.strip, data)), np.intp, len(data))
    block_level = BLOCK_TAGS[code] | (code == OTHER_NODE)
    owners = outline.nearest(block_level)[rows]
    starts, joints = _boundaries(outline, rows, owners, block_level)
    page = "".join(chain.from_iterable(zip(joints, data, strict=True)))
    split = list(map(str.split, page.split(_BOUNDARY)[1:]))
    return _without_blank(split, rows, owners, np.cumsum(starts) - 1, size)


def _boundaries(
    outline: Outline, rows: Ints, owners: Ints, block_level: Flags
) -> tuple[Flags, list[str]]:
    """Whether each text node starts a block, and what stands before it in the joined text."""
    opened = np.cumsum(block_level)[rows]
    breaks = np.cumsum(outline.code == TAG["br"])[rows]
    starts = np.ones(len(rows), dtype=np.bool_)
    passed = np.diff(breaks)
    starts[1:] = (
        (np.diff(owners) != 0) | (np.diff(opened) != 0) | (passed >= _PARAGRAPH_BREAKS)
    )
    kinds = starts * 2
    kinds[1:][(passed == 1) & ~starts[1:]] = 1
    return starts, list(map(_JOINTS.__getitem__, kinds.tolist()))


def _without_blank(
    split: list[list[str]], rows: Ints, owners: Ints, block: Ints, size: Ints
) -> Blocks:
    words = np.fromiter(map(len, split), np.intp, len(split))
    full = words > 0
    number = np.cumsum(full) - 1
    inked = size > 0
    rows, owners, block, size = rows[inked], owners[inked], number[block[inked]], size[inked]
    first = np.flatnonzero(np.diff(block, prepend=-1))
    split = list(compress(split, full))
    return Blocks(
        texts=list(map(" ".join, split)),
        split=split,
        words=words[full],
        owner=owners[first],
        first=rows[first],
        piece_row=rows,
        piece_block=block,
        piece_size=size,
    )
