# The compiled reader of pages, built from `native/` by hatch_build.py.

from collections.abc import Callable
from typing import Any

import turbohtml

from trapline.extract.outline import Flags, Floats, Ints

def configure(design: dict[str, Any], /) -> None: ...
def lexicon(scores: dict[str, float], /) -> object: ...
def outline(
    tree: turbohtml.Document, most: int, /
) -> tuple[list[Any], bytes, bytes, bytes, bytes, list[int], int, tuple[Any, ...]]: ...
def rows(nodes: list[Any], wanted: list[Any], /) -> list[int]: ...
def common_words(text: str, letters: int, common: tuple[str, ...], /) -> tuple[int, int]: ...
def utf8(body: bytes, /) -> str | None: ...
def may_tell(texts: list[str], /) -> bool: ...
def seeker(rules: tuple[tuple[str, tuple[str, ...], bool, int], ...], /) -> object: ...
def seek(seeker: object, source: str | bytes, /) -> int: ...
def reading(
    nodes: list[Any],
    code: Ints,
    parent: Ints,
    last: Ints,
    texts: list[str],
    words: Ints,
    owner: Ints,
    first: Ints,
    piece_row: Ints,
    piece_block: Ints,
    piece_size: Ints,
    echo: frozenset[str],
    hints: list[float],
    lexicons: tuple[object, ...],
    width: int,
    /,
) -> tuple[bytearray, bytearray, bytearray]: ...
def network(page: int, bound: float, wide: bool, /, *arrays: Floats) -> object: ...
def scores(
    networks: tuple[object, ...],
    matrix: Floats,
    page: Floats,
    keys: Ints,
    words: Ints,
    share: float,
    factor: float,
    /,
) -> bytearray: ...
def types(bound: float, /, *arrays: Floats) -> object: ...
def odds(types: object, page: Floats, /) -> list[float]: ...
def choose(
    texts: list[str], scores: Floats, words: Ints, floor: float, recall: float, /
) -> tuple[bytearray, int, float]: ...
def prune(
    nodes: list[Any],
    code: Ints,
    parent: Ints,
    last: Ints,
    by_code: Ints,
    words: Ints,
    first: Ints,
    piece_row: Ints,
    piece_block: Ints,
    chosen: Flags,
    /,
) -> tuple[bytes, list[int]]: ...
def languages(
    nodes: list[Any],
    code: Ints,
    parent: Ints,
    last: Ints,
    blocks: Ints,
    inner: Ints,
    given: Callable[[str], str | None],
    classed: Callable[[str], str | None],
    /,
) -> list[tuple[turbohtml.Element, str]] | None: ...
def verdicts(
    nodes: list[Any],
    code: Ints,
    parent: Ints,
    last: Ints,
    left: Ints,
    tables: Ints,
    kinds: bytes,
    /,
) -> bytes | None: ...
def with_headline(chosen: Flags, first: Ints, start: int, end: int, /) -> bytearray | None: ...
def tidy(text: str, /) -> str: ...

class References:
    def __init__(
        self, origin: str, above: list[str], parse: Callable[[str], str | None], /
    ) -> None: ...
    def absolute(self, reference: str, /) -> str | None: ...

class LinkWriter:
    def __init__(
        self,
        references: References,
        page: str,
        marks: frozenset[str],
        slow: Callable[[turbohtml.Element, str], str],
        /,
    ) -> None: ...
    def __call__(self, element: turbohtml.Element, rendered: str, /) -> str: ...

def links(
    nodes: list[Any],
    last: Ints,
    rows: Ints,
    places: tuple[list[Any], Any, Ints],
    references: References,
    parts: tuple[Any, ...],
    longest: int,
    budget: int,
    /,
) -> dict[str, Any]: ...
