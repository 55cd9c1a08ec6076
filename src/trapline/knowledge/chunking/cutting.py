"""Cuts a block that is too long for one passage, at the best joints that it has."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from trapline.knowledge.chunking.blocks import BlockKind
from trapline.knowledge.chunking.tokens import count_tokens
from trapline.knowledge.chunking.wording import wording

Span = tuple[int, int]

# A piece ends where these match; each is tried on what the one before left too long.
_LINES: Final = re.compile(r"\n")
_SENTENCES: Final = re.compile(r"(?<=[.!?…][\s\"')\]»”])|(?<=[。！？])|\n")  # noqa: RUF001 (CJK stops)
_WORDS: Final = re.compile(r"(?<=\s)")

_JOINTS: Final = {
    BlockKind.TEXT: (_SENTENCES, _WORDS),
    BlockKind.LIST: (_LINES, _SENTENCES, _WORDS),
    BlockKind.HEADING: (_WORDS,),
    BlockKind.TABLE: (_LINES, _WORDS),
    BlockKind.CODE: (_LINES, _WORDS),
}


def cut(text: str, span: Span, kind: BlockKind, most: int) -> Iterator[tuple[Span, int]]:
    """Give the pieces of a span, each of at most `most` tokens, with their tokens."""
    yield from _cut(text, span, _JOINTS[kind], most)


def tokens_of(markdown: str) -> int:
    """Count the tokens of what a piece of markdown says."""
    return count_tokens(wording(markdown))


def tail(text: str, span: Span, most: int) -> Span:
    """The last whole sentences of a span that have at most `most` tokens together."""
    start, end = span
    # No token is longer than this many characters often enough to matter.
    begin = max(start, end - most * 12)
    for piece_start, _ in _split(text, (begin, end), _SENTENCES):
        whole = piece_start > begin or begin == start
        if whole and tokens_of(text[piece_start:end]) <= most:
            return piece_start, end
    return end, end


def _cut(
    text: str, span: Span, joints: tuple[re.Pattern[str], ...], most: int
) -> Iterator[tuple[Span, int]]:
    tokens = tokens_of(text[slice(*span)])
    if tokens <= most or span[1] - span[0] <= 1:
        yield span, tokens
        return
    finer: Callable[[Span], Iterator[Span]]
    if joints:
        finer, left = (lambda whole: _split(text, whole, joints[0])), joints[1:]
    else:
        finer, left = _halves, joints
    yield from _joined(text, (p for s in finer(span) for p in _cut(text, s, left, most)), most)


def _joined(text: str, pieces: Iterator[tuple[Span, int]], most: int) -> Iterator[tuple[Span, int]]:
    """Join neighbours as long as they fit: a thousand words of one line are few pieces."""
    held: tuple[Span, int] | None = None
    for (start, end), tokens in pieces:
        if held is None:
            held = (start, end), tokens
            continue
        (held_start, _), held_tokens = held
        # Counted together, because a joint may cost or save a token.
        together = held_tokens + tokens
        if together <= most and (together := tokens_of(text[held_start:end])) <= most:
            held = (held_start, end), together
        else:
            yield held
            held = (start, end), tokens
    if held is not None:
        yield held


def _split(text: str, span: Span, joint: re.Pattern[str]) -> Iterator[Span]:
    start, end = span
    for match in joint.finditer(text, start, end):
        if start < match.end() < end:
            yield start, match.end()
            start = match.end()
    yield start, end


def _halves(span: Span) -> Iterator[Span]:
    middle = (span[0] + span[1]) // 2
    yield span[0], middle
    yield middle, span[1]
