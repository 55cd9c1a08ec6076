"""What the model is told of each block: numbers about its text, its place and its page.

Everything is computed for all blocks of a page at once. The order of the columns is part of the
model file: change one and the model must be trained again (`make train-extractor`).
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from trapline import native
from trapline.extract.html.outline import OTHER_NODE, OTHER_TAG, TAG, Floats, Ints, Outline, tag_set
from trapline.extract.main_content.blocks import BLOCK_TAGS, Blocks

Columns: TypeAlias = dict[str, npt.NDArray[Any]]

_LETTER, _UPPER, _DIGIT, _STOP, _COMMA, _JOINT, _MONEY, _QUOTE, _SPACE, _OTHER = range(10)
_CLASSES: Final = 10
STOPS: Final = _STOP
_TABLE_SIZE: Final = 0x2100


def _character_classes() -> npt.NDArray[np.uint8]:
    """Class of every character below U+2100; what lies above counts as a letter."""
    table = np.full(_TABLE_SIZE + 1, _LETTER, dtype=np.uint8)
    for point in range(_TABLE_SIZE):
        char = chr(point)
        if char.isupper():
            table[point] = _UPPER
        elif char.isdigit():
            table[point] = _DIGIT
        elif char.isspace() or point == 0:
            table[point] = _SPACE
        elif not char.isalpha():
            table[point] = _OTHER
    for chars, kind in (
        (".!?…", _STOP),
        (",;", _COMMA),
        ("|/\u2022\u00b7\u00bb\u203a>\u00ab\u2039<:\u2013\u2014", _JOINT),
        ("$€£¥₹%", _MONEY),
        ("\"'()\u201c\u201d\u2018\u2019", _QUOTE),
    ):
        table[[ord(char) for char in chars]] = kind
    return table


CHARACTER: Final = _character_classes()

HEADINGS: Final = tag_set("h1 h2 h3 h4 h5 h6")
OWN_TAGS: Final = "p li div td th h1 h2 h3 h4 dt dd pre blockquote label button figcaption option"
WITHIN_TAGS: Final = (
    "nav header footer aside main article section form table ul ol dl figure blockquote pre"
)
INLINE_TAGS: Final = "a strong em code time small span"
CONTROLS: Final = tag_set("input button select option label textarea")
# Block-level elements and those of the page's own making.
NAMED_TAGS: Final = BLOCK_TAGS.copy()
NAMED_TAGS[OTHER_TAG] = True
LANDMARKS: Final = tag_set("article main section")
_SHARED_TAGS: Final = ("article", "main", "p", "li", "td", "pre", "nav", "h2", "h3")
SHARED_COLUMNS: Final = (
    "in_article", "in_main", "own_p", "own_li", "own_td", "in_pre", "in_nav", "own_h2", "own_h3",
)  # fmt: skip
LISTED: Final = tag_set("li tr td dt dd option article section")
COUNTED_TAGS: Final = "p h1 h2 h3 li a img table td form input article section pre button time code"
_COUNTED_CODES: Final = [TAG[tag] for tag in COUNTED_TAGS.split()]
FIRST_COLUMNS: Final = [
    *("echo", "echoed", "words", "chars", "word_size", "upper", "digit", "stops", "commas"),
    *("joints", "money", "quotes", "other", "ends", "closes"),
    *(f"own_{tag}" for tag in OWN_TAGS.split()),
    *(f"in_{tag}" for tag in WITHIN_TAGS.split()),
]
"""The columns up to those that `SHARED_COLUMNS` names, in their order."""
_COUNT_NAMES: Final = [f"count_{tag}" for tag in COUNTED_TAGS.split()]
_SHARE_NAMES: Final = [f"text_{tag}" for tag in _SHARED_TAGS]
_EXTRAS: Final = 7
PAGE_SIZE: Final = len(_COUNT_NAMES) + len(_SHARE_NAMES) + _EXTRAS
"""How many numbers `page_vector` has before its hints."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows that several groups of features look at: a block's owner and the blocks around it."""

    outline: Outline
    blocks: Blocks
    level: tuple[Ints, ...]
    """Block-level elements around each block, nearest first."""
    records: Ints
    """Row of the nearest element that has two or more siblings like itself."""
    repeats: Ints
    """For every row, how many siblings of the same tag and class it has, itself included."""
    signature: Ints
    """For every row, a number that stands for its tag and class."""

    def ancestor_max(self, values: Floats) -> Floats:
        """For each block the maximum of each column over the named elements around it."""
        outline = self.outline
        # A block of a template belongs to its fragment, which is no element.
        named = NAMED_TAGS[outline.code] | (outline.code == OTHER_NODE)
        rows = np.flatnonzero(named)
        above = np.searchsorted(rows, outline.nearest_flagged(named)[outline.parent[rows]])
        highest = values[rows]
        while True:
            highest = np.maximum(highest, highest[above])
            beyond = above[above]
            if np.array_equal(beyond, above):
                return highest[np.searchsorted(rows, self.blocks.owner)]
            above = beyond


def _log(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.log1p(values))


def read_layout(outline: Outline, blocks: Blocks, classes: Ints) -> Layout:
    """`classes` numbers the class attribute of every row (0 for none)."""
    code, parent = outline.code, outline.parent
    signature = classes * len(TAG) * 2 + code
    key = parent * np.intp(2**40) + signature
    elements = np.flatnonzero(code >= OTHER_TAG)
    _, group, size = np.unique(key[elements], return_inverse=True, return_counts=True)
    repeats = np.ones(len(code), dtype=np.intp)
    repeats[elements] = size[group]
    block_level = BLOCK_TAGS[code] | (code < OTHER_TAG)
    above = outline.nearest_flagged(block_level)[parent]
    level = [blocks.owner]
    for _ in range(4):
        level.append(above[level[-1]])
    records = outline.nearest_flagged((repeats > 2) & (code != TAG["br"]))[blocks.owner]  # noqa: PLR2004
    return Layout(outline, blocks, tuple(level), records, repeats, signature)


class Totals:
    """Sums over subtrees, of blocks counted where they start and of text where it stands.

    They are made for the rows that hold blocks, and the root, which comes first.
    """

    def __init__(self, layout: Layout, letters: Ints) -> None:
        outline, blocks = layout.outline, layout.blocks
        size, start, pieces = len(outline.code), blocks.first, blocks.piece_row
        linked = outline.enclosing(outline.rows_of("a"), pieces) > 0
        in_link = np.where(linked, blocks.piece_size, 0)
        paragraph = outline.code[blocks.owner] == TAG["p"]
        running = np.zeros((9, size + 1))
        values = running[:, 1:]
        values[0] = np.bincount(start, minlength=size)
        values[1] = np.bincount(start, blocks.words, size)
        values[2] = np.bincount(start, np.where(paragraph, blocks.words, 0), size)
        values[3] = np.bincount(start, letters, size)
        values[4] = np.bincount(pieces, blocks.piece_size, size)
        values[5] = np.bincount(pieces, in_link, size)
        values[6] = outline.code == TAG["img"]
        values[7] = CONTROLS[outline.code]
        values[8] = outline.code == TAG["a"]
        np.cumsum(values, axis=1, out=values)
        holding = running[0].take(outline.last + 1) > running[0, :-1]
        holding[0] = True
        self.rows = np.flatnonzero(holding)
        self.place = np.cumsum(holding) - 1
        """Where among `rows` each row of the outline is."""
        ends = outline.last[self.rows] + 1
        self.blocks, self.words, self.prose, self.stops, self.chars, self.link_chars, *others = (
            running.take(ends, axis=1) - running.take(self.rows, axis=1)
        )
        self.images, self.controls, self.anchors = others
        self.block_link_chars = np.bincount(blocks.piece_block, in_link, len(blocks))
        self.block_chars = np.bincount(blocks.piece_block, blocks.piece_size, len(blocks))


def text_counts(texts: list[str]) -> npt.NDArray[np.int64]:
    """How many characters of each class every text has."""
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = CHARACTER[np.minimum(points, _TABLE_SIZE)]
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    slots = np.repeat(np.arange(len(texts)) * _CLASSES, lengths) + kinds
    return np.bincount(slots, minlength=len(texts) * _CLASSES).reshape(-1, _CLASSES)


def _text_columns(blocks: Blocks, counts: npt.NDArray[np.int64]) -> Columns:
    length = counts.sum(axis=1)
    share = counts / np.maximum(length, 1)[:, None]
    last = [text[-1] for text in blocks.texts]
    ends = np.array([char in '.!?…:"”' for char in last], dtype=np.bool_)
    closes = np.array([char in ".!?…" for char in last], dtype=np.bool_)
    return {
        "words": _log(blocks.words),
        "chars": _log(length),
        "word_size": length / np.maximum(blocks.words, 1),
        "upper": share[:, _UPPER],
        "digit": share[:, _DIGIT],
        "stops": _log(counts[:, _STOP]),
        "commas": _log(counts[:, _COMMA]),
        "joints": share[:, _JOINT],
        "money": _log(counts[:, _MONEY]),
        "quotes": share[:, _QUOTE],
        "other": share[:, _OTHER],
        "ends": ends,
        "closes": closes,
    }


def _tag_columns(layout: Layout) -> Columns:
    outline, blocks = layout.outline, layout.blocks
    own = outline.code[blocks.owner]
    columns: Columns = {f"own_{tag}": own == TAG[tag] for tag in OWN_TAGS.split()}
    for tag in WITHIN_TAGS.split():
        columns[f"in_{tag}"] = outline.enclosing(outline.rows_of(tag), blocks.first)
    whole = np.maximum(np.bincount(blocks.piece_block, blocks.piece_size, len(blocks)), 1)
    for tag in INLINE_TAGS.split():
        inside = outline.enclosing(outline.rows_of(tag), blocks.piece_row) > 0
        size = np.where(inside, blocks.piece_size, 0)
        columns[f"part_{tag}"] = np.bincount(blocks.piece_block, size, len(blocks)) / whole
    elements = np.flatnonzero(outline.code >= OTHER_TAG)
    columns["depth"] = _log(outline.enclosing(elements, blocks.owner))
    listed = np.flatnonzero(LISTED[outline.code])
    columns["lists"] = outline.enclosing(listed, blocks.first)
    return columns


def _place_columns(layout: Layout, totals: Totals) -> Columns:
    outline, blocks = layout.outline, layout.blocks
    count, words = len(blocks), blocks.words
    before = np.cumsum(words) - words
    heading = HEADINGS[outline.code[blocks.owner]]
    order = np.arange(count)
    since = order - np.maximum.accumulate(np.where(heading, order, -1))
    first_h1 = np.flatnonzero(outline.code[blocks.owner] == TAG["h1"])
    start = first_h1[0] if len(first_h1) else 0
    prose = (words > 12) & (totals.block_link_chars < totals.block_chars * 0.4)  # noqa: PLR2004
    ahead = np.cumsum(prose[::-1])[::-1]
    return {
        "place": order / count,
        "place_words": before / max(int(words.sum()), 1),
        "from_start": _log(order),
        "from_end": _log(count - 1 - order),
        "since_heading": _log(since),
        "from_h1": np.sign(order - start) * _log(np.abs(order - start)),
        "has_h1": np.full(count, len(first_h1) > 0),
        "prose_before": (np.cumsum(prose) - prose) / max(int(prose.sum()), 1),
        "prose_after": _log(ahead - prose),
        **_neighbour_columns(words, totals),
    }


def _neighbour_columns(words: Ints, totals: Totals) -> Columns:
    density = totals.block_link_chars / np.maximum(totals.block_chars, 1)
    columns: Columns = {"links": density}
    size = _log(words)
    for distance in (1, 2):
        for name, values in (("words", size), ("links", density)):
            padded = np.concatenate((np.full(distance, -1.0), values, np.full(distance, -1.0)))
            columns[f"{name}_before_{distance}"] = padded[: len(values)]
            columns[f"{name}_after_{distance}"] = padded[2 * distance :]
    for span in (4, 12):
        columns[f"words_near_{span}"] = _log(_windowed(words, span) / (2 * span + 1))
        nearby = np.maximum(_windowed(totals.block_chars, span), 1)
        columns[f"links_near_{span}"] = _windowed(totals.block_link_chars, span) / nearby
    return columns


def _windowed(values: npt.NDArray[Any], span: int) -> npt.NDArray[Any]:
    """Sum of the values within `span` places either side."""
    running = np.concatenate(([0], np.cumsum(values)))
    place = np.arange(len(values))
    upper = np.minimum(place + span + 1, len(values))
    return running[upper] - running[np.maximum(place - span, 0)]


_MEASURES: Final = (
    "words", "share", "links", "prose", "blocks", "stops", "images", "controls", "anchors",
)  # fmt: skip
_CONTAINERS: Final = ("up1", "up2", "up3", "up4", "mark", "record", "holder")
_CONTAINER_COLUMNS: Final = [f"{name}_{measure}" for name in _CONTAINERS for measure in _MEASURES]


def _measures(totals: Totals) -> Floats:
    """What is measured of the elements that hold blocks, a row each."""
    blocks = np.maximum(totals.blocks, 1)
    return np.array(
        (
            _log(totals.words),
            totals.words / max(float(totals.words[0]), 1),
            totals.link_chars / np.maximum(totals.chars, 1),
            totals.prose / max(float(totals.prose[0]), 1),
            _log(totals.blocks),
            totals.stops / np.maximum(totals.words, 1),
            _log(totals.images),
            totals.controls / blocks,
            totals.anchors / blocks,
        ),
        dtype=np.float32,
    )


def _container_columns(layout: Layout, totals: Totals) -> Columns:
    outline, blocks = layout.outline, layout.blocks
    landmark = outline.nearest_flagged(LANDMARKS[outline.code])[blocks.owner]
    around = (*layout.level[1:], landmark, layout.records, outline.parent[layout.records])
    measures = _measures(totals).take(totals.place[np.array(around)], axis=1)
    columns: Columns = dict(
        zip(
            _CONTAINER_COLUMNS,
            measures.swapaxes(0, 1).reshape(len(_CONTAINER_COLUMNS), len(blocks)),
            strict=True,
        )
    )
    page_prose = max(float(totals.prose[0]), 1)
    for part in (0.5, 0.8):
        holding = np.flatnonzero(totals.prose >= part * page_prose)
        root = totals.rows[holding[-1]] if len(holding) else 0
        columns[f"inside_{part}"] = (blocks.first >= root) & (blocks.first <= outline.last[root])
    return columns


def _record_columns(layout: Layout) -> Columns:
    """Cards, posts and rows: how often the element around a block is repeated, and how big."""
    outline, blocks = layout.outline, layout.blocks
    rows = layout.records
    repeats = layout.repeats.astype(np.float32)
    signature = layout.signature[blocks.owner] * 31 + layout.signature[layout.level[1]]
    _, group, size = np.unique(signature, return_inverse=True, return_counts=True)
    alike_words = np.bincount(group, blocks.words)
    holder = outline.parent[rows]
    return {
        "record_repeats": _log(repeats[rows]),
        "record_is_root": rows == 0,
        "record_position": (blocks.first - holder) / np.maximum(outline.last[holder] - holder, 1),
        "most_repeats": _log(outline.ancestor_max(repeats)[blocks.owner]),
        "own_repeats": _log(repeats[blocks.owner]),
        "up_repeats": _log(repeats[layout.level[1]]),
        "alike": _log(size[group]),
        "alike_words": _log(alike_words[group] / size[group]),
        "alike_share": alike_words[group] / max(int(blocks.words.sum()), 1),
    }


def page_vector(
    layout: Layout, totals: Totals, columns: Columns, hints: Floats
) -> tuple[list[str], Floats]:
    """Numbers about the whole page: they tell its type, and go with every block."""
    outline, blocks = layout.outline, layout.blocks
    tags = np.diff(outline.code_starts)
    words = max(int(blocks.words.sum()), 1)
    inside = np.array([columns[name] > 0 for name in SHARED_COLUMNS]) @ blocks.words / words
    names = [*_COUNT_NAMES, *_SHARE_NAMES]
    values = [*np.log1p(tags[_COUNTED_CODES]), *inside]
    long = blocks.words[blocks.words > 12]  # noqa: PLR2004
    extra = {
        "page_blocks": np.log1p(len(blocks)),
        "page_words": np.log1p(words),
        "page_links": totals.link_chars[0] / max(float(totals.chars[0]), 1.0),
        "page_long": np.log1p(len(long)),
        "page_long_words": float(long.sum()) / words,
        "page_long_mean": np.log1p(long.mean()) if len(long) else 0.0,
        "page_stops": totals.stops[0] / words,
    }
    names += [*extra, *(f"hint_{number}" for number in range(len(hints)))]
    values += list(extra.values())
    return names, np.concatenate((np.array(values, dtype=np.float32), hints))


def _echo_columns(blocks: Blocks, echo: frozenset[str]) -> Columns:
    """How much of a block the page's title and description repeat, and how much of them it has."""
    words = map(str.split, blocks.texts)
    shared = np.fromiter(map(len, map(echo.intersection, words)), np.float32, len(blocks))
    return {
        "echo": shared / np.maximum(blocks.words, 1),
        "echoed": shared / max(len(echo), 1),
    }


def _copy_columns(blocks: Blocks) -> Columns:
    """How often the page has a block's text, and whether this is the first time."""
    distinct = dict.fromkeys(blocks.texts)
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    number = np.fromiter(map(numbers.__getitem__, blocks.texts), np.intp, len(blocks))
    first = np.diff(np.maximum.accumulate(number), prepend=-1) > 0
    return {"copies": _log(np.bincount(number)[number] - 1), "first_copy": first}


def block_columns(
    layout: Layout,
    totals: Totals,
    counts: npt.NDArray[np.int64],
    echo: frozenset[str],
) -> Columns:
    return {
        **_echo_columns(layout.blocks, echo),
        **_text_columns(layout.blocks, counts),
        **_tag_columns(layout),
        **_place_columns(layout, totals),
        **_container_columns(layout, totals),
        **_record_columns(layout),
        **_copy_columns(layout.blocks),
    }


def _codes(tags: str) -> bytes:
    return bytes(TAG[tag] for tag in tags.split())


if native.available:
    native.library.configure(
        {
            "named": NAMED_TAGS.tobytes(),
            "heading": HEADINGS.tobytes(),
            "control": CONTROLS.tobytes(),
            "landmark": LANDMARKS.tobytes(),
            "listed": LISTED.tobytes(),
            "own": _codes(OWN_TAGS),
            "within": _codes(WITHIN_TAGS),
            "inline": _codes(INLINE_TAGS),
            "counted": _codes(COUNTED_TAGS),
            "shared": tuple(map(FIRST_COLUMNS.index, SHARED_COLUMNS)),
            "character": CHARACTER.tobytes(),
        }
    )
