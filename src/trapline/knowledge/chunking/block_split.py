"""Splits a block that is too long for one passage: at lines, sentences, then words."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from trapline.knowledge.chunking.blocks import BlockKind
from trapline.knowledge.chunking.plain_text import plain_text
from trapline.knowledge.chunking.tokens import count_tokens

Span = tuple[int, int]
Piece = tuple[Span, int]
"""A span with its tokens."""

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


def split_block(text: str, span: Span, kind: BlockKind, most: int) -> Iterator[Piece]:
    """Give the pieces of a span, each of at most `most` tokens, with their tokens."""
    yield from _split_at(text, span, _JOINTS[kind], most)


def count_plain_tokens(markdown: str) -> int:
    """Count the tokens of what a piece of markdown says."""
    return count_tokens(plain_text(markdown))


def trailing_sentences(text: str, span: Span, most: int) -> Span:
    """The last whole sentences of a span that have at most `most` tokens together."""
    start, end = span
    # No token is longer than this many characters often enough to matter.
    begin = max(start, end - most * 12)
    for piece_start, _ in _split(text, (begin, end), _SENTENCES):
        whole = piece_start > begin or begin == start
        if whole and count_plain_tokens(text[piece_start:end]) <= most:
            return piece_start, end
    return end, end


def _split_at(
    text: str, span: Span, joints: tuple[re.Pattern[str], ...], most: int
) -> Iterator[Piece]:
    tokens = count_plain_tokens(text[slice(*span)])
    if tokens <= most or span[1] - span[0] <= 1:
        yield span, tokens
        return
    finer: Callable[[Span], Iterator[Span]]
    if joints:
        finer, left = (lambda whole: _split(text, whole, joints[0])), joints[1:]
    else:
        finer, left = _halves, joints
    yield from _joined(text, (p for s in finer(span) for p in _split_at(text, s, left, most)), most)


def _joined(text: str, pieces: Iterator[Piece], most: int) -> Iterator[Piece]:
    """Join neighbours as long as they fit: a thousand words of one line are few pieces.

    A joint saves a token, as a rule, so that what pieces have one by one is enough to go on with;
    what they have together is counted when that seems too much, not for every word.
    """
    held: list[Piece] = []
    guess = 0
    for span, tokens in pieces:
        together = guess + tokens
        if held and together > most:
            start = held[0][0][0]
            guess = count_plain_tokens(text[start : span[0]])
            together = (
                most + 1 if guess + tokens > most else count_plain_tokens(text[start : span[1]])
            )
            if together > most:
                yield from _closed(text, held, most)
                held, together = [], tokens
        held.append((span, tokens))
        guess = together
    if held:
        yield from _closed(text, held, most)


def _closed(text: str, held: list[Piece], most: int) -> Iterator[Piece]:
    """Give pieces as one; should they have more tokens together than apart, as few as they fit in."""
    if len(held) == 1:
        yield held[0]
        return
    whole = held[0][0][0], held[-1][0][1]
    tokens = count_plain_tokens(text[slice(*whole)])
    if tokens <= most:
        yield whole, tokens
        return
    first, *others = held
    for (start, end), one in others:
        (begun, _), before = first
        together = before + one
        if together <= most and (together := count_plain_tokens(text[begun:end])) <= most:
            first = (begun, end), together
        else:
            yield first
            first = (start, end), one
    yield first


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
