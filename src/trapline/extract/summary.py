"""A summary made of a text's own sentences: the ones that say most of what the text is about."""

import math
import re
from collections import Counter

_MAX_TEXT = 200_000
_MAX_SENTENCES = 600
_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'\u201d\u2019)\]]*\s+(?=[^\W\d_a-z]|[\"'\u201c(\[]|\d)|(?<=[。\uff01\uff1f])\s*|\n\s*\n|\n(?=[^a-z])"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|No|Inc|Ltd|Co|approx|ca|bzw|z\.B|Nr)|\b[A-Z])\.$"
)
_SHORTEST, _LONGEST = 25, 500
_NEW_ENOUGH = 0.6
_LEAD = 6
_SHARE_OF_COMMON = 0.25


def summarise(
    text: str, *, title: str | None = None, sentences: int = 5, characters: int = 900
) -> str:
    """The best few sentences of a text, in its own order. The same text gives the same summary."""
    found = _sentences(text[:_MAX_TEXT])
    if not found:
        return " ".join(text[:characters].split())
    words = [_WORD.findall(sentence.lower()) for sentence in found]
    weights = _weights(words, title or "")
    scores = [_score(place, terms, weights, len(found)) for place, terms in enumerate(words)]
    chosen = _chosen(found, words, scores, sentences, characters)
    return " ".join(found[place] for place in chosen)


def _sentences(text: str) -> list[str]:
    parts: list[str] = []
    for piece in _SENTENCE.split(text):
        part = " ".join(piece.split())
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += " " + part
        elif part:
            parts.append(part)
    return [part for part in parts[: _MAX_SENTENCES * 4] if _SHORTEST <= len(part) <= _LONGEST][
        :_MAX_SENTENCES
    ]


def _weights(words: list[list[str]], title: str) -> dict[str, float]:
    """How much each word matters: often used, but not in every sentence; more if in the title.

    What stands in many sentences of a text are its language's little words, whatever the language.
    """
    spread = Counter(word for terms in words for word in set(terms))
    most = max(3.0, _SHARE_OF_COMMON * len(words))
    weights = {
        word: math.log1p(count) * min(len(word), 8)
        for word, count in spread.items()
        if count <= most
    }
    for word in _WORD.findall(title.lower()):
        if word in weights:
            weights[word] *= 1.5
    return weights


def _score(place: int, terms: list[str], weights: dict[str, float], total: int) -> float:
    # In the order of the text: a sum in the order of a set would depend on the process.
    known = sum(weights.get(word, 0.0) for word in dict.fromkeys(terms))
    # Writers say first what matters, and sometimes last what follows from it.
    position = 1.0 + max(0, _LEAD - place) / _LEAD + (0.15 if place == total - 1 else 0.0)
    return position * known / math.sqrt(len(terms) + 4)


def _chosen(
    found: list[str], words: list[list[str]], scores: list[float], most: int, room: int
) -> list[int]:
    chosen: list[int] = []
    said: set[str] = set()
    for place in sorted(range(len(found)), key=lambda place: (-scores[place], place)):
        terms = set(words[place])
        fits = len(found[place]) <= room
        if not fits or (terms and len(terms & said) > _NEW_ENOUGH * len(terms)):
            continue
        chosen.append(place)
        said |= terms
        room -= len(found[place]) + 1
        if len(chosen) == most:
            break
    return sorted(chosen) or [0]
