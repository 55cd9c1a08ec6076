"""The benchmark's score: F1 of the multisets of lower-cased words."""

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def word_f1(found: Sequence[str], truth: Sequence[str]) -> float:
    """1 for nothing where nothing is expected, 0 where only one of the two is empty."""
    if not found or not truth:
        return float(not found and not truth)
    overlap = sum((Counter(found) & Counter(truth)).values())
    return 2 * overlap / (len(found) + len(truth))
