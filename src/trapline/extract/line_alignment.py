"""Which lines of two texts belong together: patience first, then a close look, within bounds.

Lines that occur once in both texts are matched in order, which takes n log n. The short stretches
between them are compared pair by pair, long ones by the fewest edits (Myers) if these are few. A
stretch that is too long and too different for either is called replaced.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_MAX_PAIRS = 4_000_000
_CLOSE_LOOK = 250_000
"""Stretches with more pairs of lines than this are not compared pair by pair."""
_MAX_EDITS = 1_000

Pair = tuple[int, int]


def aligned(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Pairs of equal lines, by their indexes, both rising."""
    pairs: list[Pair] = []
    budget = _MAX_PAIRS
    stretches = [(0, len(old), 0, len(new))]
    while stretches:
        a, b, c, d = stretches.pop()
        while a < b and c < d and old[a] == new[c]:
            pairs.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            pairs.append((b, d))
        if a == b or c == d:
            continue
        anchors = _anchors(old, new, (a, b, c, d))
        if anchors:
            stretches += _between(anchors, (a, b, c, d))
        elif (b - a) * (d - c) <= min(_CLOSE_LOOK, budget):
            budget -= (b - a) * (d - c)
            pairs += [(a + x, c + y) for x, y in _close(old[a:b], new[c:d])]
        elif budget > 0:
            budget -= _MAX_EDITS * _MAX_EDITS
            pairs += [(a + x, c + y) for x, y in _fewest_edits(old[a:b], new[c:d])]
    return sorted(pairs)


def _anchors(
    old: Sequence[str], new: Sequence[str], within: tuple[int, int, int, int]
) -> list[Pair]:
    """Lines that are unique on both sides, the longest series of them that keeps its order."""
    a, b, c, d = within
    old_counts, new_counts = Counter(old[a:b]), Counter(new[c:d])
    places = {new[i]: i for i in range(c, d) if new_counts[new[i]] == 1}
    unique = [
        (i, places[old[i]]) for i in range(a, b) if old_counts[old[i]] == 1 and old[i] in places
    ]
    return _longest_rising(unique)


def _longest_rising(pairs: list[Pair]) -> list[Pair]:
    tails: list[int] = []
    ends: list[int] = []
    before = [-1] * len(pairs)
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        if length == len(tails):
            tails.append(place)
            ends.append(index)
        else:
            tails[length], ends[length] = place, index
        before[index] = ends[length - 1] if length else -1
    found: list[Pair] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]


def _between(
    anchors: list[Pair], within: tuple[int, int, int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """The stretches that begin at each anchor, and the one before the first."""
    a, b, c, d = within
    starts = [(a, c), *anchors]
    ends = [*anchors, (b, d)]
    for (from_old, from_new), (to_old, to_new) in zip(starts, ends, strict=True):
        if from_old < to_old or from_new < to_new:
            yield from_old, to_old, from_new, to_new


def _close(old: Sequence[str], new: Sequence[str]) -> Iterator[Pair]:
    for x, y, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        yield from ((x + step, y + step) for step in range(size))


def _fewest_edits(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Pairs that leave the fewest lines over, if fewer than the limit; else none.

    `reach[k]` is how far in the old text one can get on diagonal k (old minus new index) with
    as many edits as rounds were made.
    """
    reach = {1: 0}
    rounds: list[dict[int, int]] = []
    for edits in range(_MAX_EDITS):
        rounds.append(reach.copy())
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach.get(k - 1, -1) < reach.get(k + 1, -1))
            x = reach.get(k + 1, 0) if down else reach[k - 1] + 1
            while x < len(old) and 0 <= x - k < len(new) and old[x] == new[x - k]:
                x += 1
            reach[k] = x
            if x >= len(old) and x - k >= len(new):
                return _retraced(rounds, len(old), len(new))
    return []


def _retraced(rounds: list[dict[int, int]], x: int, y: int) -> list[Pair]:
    pairs: list[Pair] = []
    for edits in range(len(rounds) - 1, -1, -1):
        reach, k = rounds[edits], x - y
        down = k == -edits or (k != edits and reach.get(k - 1, -1) < reach.get(k + 1, -1))
        before = k + 1 if down else k - 1
        start = reach.get(before, 0) if edits else 0
        from_x, from_y = (start, start - before) if edits else (0, 0)
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs
