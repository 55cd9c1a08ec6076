"""Postings of one term in one segment: the texts that have it, term frequencies, text lengths.

A posting is six bytes: the text's ordinal in its segment (four), how often the term stands in it
(one, saturating) and the text's length on a logarithmic scale (one). BM25's weights are applied
when a query runs, so that no posting depends on statistics that change.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

# Two rows fill a page of Postgres; more would be moved out of line, fewer would be more rows.
PART: Final = 640

_MOST: Final = 255
_SCALE: Final = _MOST / math.log(65_536)


@dataclass(frozen=True, slots=True)
class Postings:
    """Sorted by ordinal; ordinals are unique."""

    ordinals: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    lengths: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ordinals)

    def part(self, start: int, end: int) -> "Postings":
        return Postings(self.ordinals[start:end], self.counts[start:end], self.lengths[start:end])

    def packed(self) -> bytes:
        return self.ordinals.tobytes() + self.counts.tobytes() + self.lengths.tobytes()

    def parts(self) -> list["Postings"]:
        return [self.part(at, at + PART) for at in range(0, len(self), PART)]


def unpack(packed: bytes) -> Postings:
    size = len(packed) // 6
    return Postings(
        np.frombuffer(packed, np.uint32, size),
        np.frombuffer(packed, np.uint8, size, size * 4),
        np.frombuffer(packed, np.uint8, size, size * 5),
    )


def concatenate(parts: list[Postings]) -> Postings:
    if len(parts) == 1:
        return parts[0]
    return Postings(
        np.concatenate([part.ordinals for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def length_codes(lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Encode lengths in one byte each, to within three per cent."""
    codes: NDArray[np.float64] = np.rint(np.log(np.maximum(lengths, 1)) * _SCALE)
    return np.minimum(codes, _MOST).astype(np.uint8)


def decoded_lengths() -> NDArray[np.float64]:
    """The length of each of the 256 codes."""
    return np.exp(np.arange(_MOST + 1) / _SCALE)
