# What the C files beside this one give to Python; each Python module says what its functions mean.

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import turbohtml

Array: TypeAlias = Any
"""What has the buffer of a contiguous array."""

def configure(constants: dict[str, Any], /) -> None: ...

# extract/html/outline.py, extract/main_content/blocks.py
def outline(
    tree: turbohtml.Document, most: int, /
) -> tuple[list[Any], tuple[bytes, bytes, bytes, bytes], list[int], int, tuple[Any, ...]]: ...
def rows(nodes: list[Any], elements: list[Any], /) -> list[int]: ...

# extract/html/attribute_scan.py
def seeker(rules: tuple[tuple[str, tuple[str, ...], bool, int], ...], /) -> object: ...
def seek(seeker: object, source: str | bytes, /) -> int: ...

# extract/html/url_resolution.py, extract/html/links.py
class References:
    def __init__(
        self, origin: str, above: list[str], parse: Callable[[str], str | None], /
    ) -> None: ...
    def absolute(self, reference: str, /) -> str | None: ...

class _References(Protocol):
    def absolute(self, reference: str, /) -> str | None: ...

def links(
    nodes: list[Any],
    last: Array,
    rows: Array,
    regions: tuple[list[Any], Any, Array],
    references: _References,
    functions: tuple[Any, ...],
    longest: int,
    budget: int,
    /,
) -> dict[str, Any]: ...

# extract/main_content/model_input.py
def lexicon(scores: dict[str, float], /) -> object: ...
def reading(
    nodes: list[Any],
    code: Array,
    parent: Array,
    last: Array,
    texts: list[str],
    words: Array,
    owner: Array,
    first: Array,
    piece_row: Array,
    piece_block: Array,
    piece_size: Array,
    echo: frozenset[str],
    hints: list[float],
    lexicons: tuple[object, ...],
    width: int,
    /,
) -> tuple[bytearray, bytearray, bytearray]: ...

# extract/main_content/scorer.py
def network(page: int, bound: float, wide: bool, /, *arrays: Array) -> object: ...
def scores(
    networks: tuple[object, ...],
    matrix: Array,
    page: Array,
    keys: Array,
    words: Array,
    share: float,
    factor: float,
    /,
) -> bytearray: ...

# extract/main_content/selection.py
def choose(
    texts: list[str], scores: Array, words: Array, floor: float, recall: float, /
) -> tuple[bytearray, int, float]: ...

# extract/main_content/pruning.py
def prune(
    nodes: list[Any],
    code: Array,
    parent: Array,
    last: Array,
    by_code: Array,
    words: Array,
    first: Array,
    piece_row: Array,
    piece_block: Array,
    chosen: Array,
    /,
) -> tuple[bytes, list[int]]: ...

# extract/markdown/renderer.py
class LinkWriter:
    def __init__(
        self,
        references: _References,
        page: str,
        anchors: frozenset[str],
        others: Callable[[turbohtml.Element, str], str],
        /,
    ) -> None: ...
    def __call__(self, element: turbohtml.Element, rendered: str, /) -> str: ...

def tidy(text: str, /) -> str: ...

# store/similarity.py, store/content_hash.py
def text_words(text: str, /) -> bytearray: ...
def text_features(words: Array, /) -> bytearray: ...
def squeezed(text: str, /) -> bytes | None: ...
