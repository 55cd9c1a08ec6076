"""Which blocks of a page its ground truth contains, as a share of each block's words.

A long block is judged by its runs of four words. A short one occurs in many a text by accident:
it must occur as a whole, and stand in a part of the page that the truth covers. Of several equal
blocks only as many count as the truth has.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.extractor.scoring import words_of

Floats = npt.NDArray[np.float64]
Words = list[str]

_RUN = 4
_NEAR = 10
_WEIGHT_CAP = 40
_COVERED = 0.3
_HALF = 0.5


@dataclass(frozen=True)
class _Truth:
    joined: str
    lines: Counter[str]
    runs: dict[int, set[tuple[str, ...]]]

    @classmethod
    def of(cls, text: str) -> "_Truth":
        words = words_of(text)
        runs = {n: set(zip(*(words[i:] for i in range(n)), strict=False)) for n in range(1, 5)}
        lines = Counter(" ".join(words_of(line)) for line in text.split("\n"))
        return cls(f" {' '.join(words)} ", lines, runs)

    def count(self, text: str) -> int:
        return self.joined.count(f" {text} ")


def label_blocks(texts: list[str], truth_text: str) -> Floats:
    blocks = [words_of(text) for text in texts]
    if not blocks or not words_of(truth_text):
        return np.zeros(len(blocks))
    truth = _Truth.of(truth_text)
    sizes = np.array([len(block) for block in blocks])
    labels = np.array([_own_share(block, truth) for block in blocks])
    flowing = _share_in_flow(blocks, sizes, truth)
    covered = _nearby(np.where(sizes <= _RUN, flowing, labels), np.minimum(sizes, _WEIGHT_CAP))
    return _without_accidents(labels, blocks, truth, flowing, covered)


def _own_share(block: Words, truth: _Truth) -> float:
    size = len(block)
    if not size:
        return 0.0
    length = min(_RUN, size)
    found = np.zeros(size, dtype=bool)
    for start in range(size - length + 1):
        if tuple(block[start : start + length]) in truth.runs[length]:
            found[start : start + length] = True
    share = float(found.mean())
    return share if size > _RUN or share == 1 else 0.0


def _share_in_flow(blocks: list[Words], sizes: npt.NDArray[np.int64], truth: _Truth) -> Floats:
    """As the share of a block, but in runs that may cross from one block to the next."""
    flow = [word for block in blocks for word in block]
    found = np.zeros(len(flow))
    for start, run in enumerate(zip(flow, flow[1:], flow[2:], flow[3:], strict=False)):
        if run in truth.runs[_RUN]:
            found[start : start + _RUN] = 1
    running = np.concatenate(([0], np.cumsum(found)))
    ends = np.cumsum(sizes)
    return (running[ends] - running[ends - sizes]) / np.maximum(sizes, 1)


def _nearby(shares: Floats, weights: npt.NDArray[np.int64]) -> Floats:
    """The weighted mean share over the blocks around each."""
    kernel = np.ones(2 * _NEAR + 1)
    part = slice(_NEAR, _NEAR + len(shares))
    total = np.convolve(weights, kernel)[part]
    return np.convolve(shares * weights, kernel)[part] / np.maximum(total, 1e-9)


def _without_accidents(
    labels: Floats, blocks: list[Words], truth: _Truth, flowing: Floats, covered: Floats
) -> Floats:
    places = defaultdict(list)
    for number, block in enumerate(blocks):
        if labels[number] >= _HALF and len(block) <= _WEIGHT_CAP:
            places[" ".join(block)].append(number)
    for text, numbers in places.items():
        ranked = sorted(numbers, key=lambda n: -(covered[n] + flowing[n] / 2))
        lines, count = truth.lines.get(text, 0), truth.count(text)
        kept = ranked[: max(count, 1)]
        if len(blocks[numbers[0]]) <= _RUN:
            placed = [n for n in ranked if covered[n] > _COVERED or flowing[n] >= _HALF]
            kept = placed[: max(count, lines)] or ranked[:lines]
        for number in set(numbers) - set(kept):
            labels[number] = 0.0
    return labels
