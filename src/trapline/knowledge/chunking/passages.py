"""Passages: blocks packed into overlapping slices of bounded size, each with its headings.

A passage is a slice of the text, so a highlight in it can be shown in its source. A heading starts a
new passage unless the previous one would be very short.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from trapline.errors import InvalidInput
from trapline.knowledge.chunking.block_split import (
    Span,
    count_plain_tokens,
    split_block,
    trailing_sentences,
)
from trapline.knowledge.chunking.blocks import BlockKind, MarkdownBlock, blocks
from trapline.knowledge.chunking.plain_text import plain_text, plain_title
from trapline.knowledge.chunking.tokens import count_tokens

_FLOWING: Final = frozenset({BlockKind.TEXT, BlockKind.LIST})
_LEAST: Final = 16


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """The most tokens of a passage, and how many it repeats of the one before."""

    most: int = 256
    overlap: int = 50

    def __post_init__(self) -> None:
        if self.most < _LEAST:
            raise InvalidInput(f"a chunk needs at least {_LEAST} tokens, not {self.most}")
        if not 0 <= self.overlap <= self.most // 2:
            raise InvalidInput(
                f"chunks of {self.most} tokens can overlap by 0 to {self.most // 2},"
                f" not {self.overlap}"
            )


DEFAULT_SIZE: Final = ChunkSize()


@dataclass(frozen=True, slots=True)
class Passage:
    """`source[start:end]` is its text; `headings` are those it stands under, outermost first.

    `words` is the text without link targets and escapes; `tokens` counts those.
    """

    text: str
    words: str
    start: int
    end: int
    headings: tuple[str, ...]
    tokens: int


def passages(markdown: str, size: ChunkSize = DEFAULT_SIZE) -> Iterator[Passage]:
    """Split a text; white space alone has no passages."""
    packer = _Packer(markdown, size)
    for block in blocks(markdown):
        yield from packer.add(block)
    yield from packer.close()


@dataclass(slots=True)
class _Packer:
    """Builds one passage at a time from blocks."""

    text: str
    size: ChunkSize
    path: list[tuple[int, str]] = field(default_factory=list)
    start: int | None = None
    end: int = 0
    tokens: int = 0
    # Where the open passage's own blocks begin, after the overlap.
    fresh: int = 0
    body: int = 0
    headings: tuple[str, ...] = ()
    last: BlockKind = BlockKind.TEXT

    def add(self, block: MarkdownBlock) -> Iterator[Passage]:
        if block.kind is BlockKind.HEADING:
            yield from self._heading(block)
        for (start, end), tokens in self._pieces(block):
            yield from self._piece(start, end, tokens, block.kind)

    def close(self) -> Iterator[Passage]:
        if self.start is None:
            return
        text = self.text[self.start : self.end]
        words = plain_text(text)
        yield Passage(text, words, self.start, self.end, self.headings, count_tokens(words))
        self.start, self.tokens, self.body = None, 0, 0

    def _heading(self, block: MarkdownBlock) -> Iterator[Passage]:
        if self.body >= self.size.most // 8:
            yield from self.close()
        self.path = [(level, title) for level, title in self.path if level < block.level]
        self.path.append((block.level, plain_title(block.title)))
        if not self.body:
            self.headings = self._titles()

    def _pieces(self, block: MarkdownBlock) -> list[tuple[Span, int]]:
        span, size = (block.start, block.end), self.size
        pieces = list(split_block(self.text, span, block.kind, size.most))
        if len(pieces) > 1 and block.kind in _FLOWING:
            # Shorter pieces leave room for the overlap.
            return list(split_block(self.text, span, block.kind, size.most - size.overlap))
        return pieces

    def _piece(self, start: int, end: int, tokens: int, kind: BlockKind) -> Iterator[Passage]:
        if self.start is not None and not self._fits(end, tokens):
            repeated = self._repeated()
            yield from self.close()
            if repeated < start and count_plain_tokens(self.text[repeated:end]) <= self.size.most:
                self._begin(repeated, start)
        if self.start is None:
            self._begin(start, start)
        self.tokens += tokens
        self.end = end
        self.last = kind
        self.body += 0 if kind is BlockKind.HEADING else tokens

    def _begin(self, start: int, fresh: int) -> None:
        self.start, self.fresh = start, fresh
        self.headings = self._titles()
        self.tokens = count_plain_tokens(self.text[start:fresh]) if fresh > start else 0

    def _fits(self, end: int, tokens: int) -> bool:
        if self.tokens + tokens > self.size.most:
            return False
        # Joining may cost a token each: near the bound, count exactly.
        near = self.tokens + tokens > self.size.most * 7 // 8
        return not near or count_plain_tokens(self.text[self.start : end]) <= self.size.most

    def _repeated(self) -> int:
        """The start of the next passage, with its overlap."""
        if self.last not in _FLOWING or not self.size.overlap:
            return self.end
        return trailing_sentences(self.text, (self.fresh, self.end), self.size.overlap)[0]

    def _titles(self) -> tuple[str, ...]:
        return tuple(title for _, title in self.path if title)
