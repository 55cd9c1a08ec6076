"""How alike two texts are: sets of word sequences, their MinHash, and bands to find it by.

Words in a row (or characters, in scripts that write no spaces) make a text's features. The share of
features that two texts have in common, 0 to 100, is their similarity. The MinHash of all features
estimates it; texts that share one of its bands are compared in full.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from rensa import RMinHash

FEWEST_WORDS: Final = 25
"""Below this a text is a phrase of the frame, such as “Page not found”, and like nothing."""

ENOUGH_WORDS: Final = 120
"""Below this the titles must be the same: a text may be all frame, as a newsletter's invitation.
From here on one title may say more than the other, as “A, printed” does; two that each say something
of their own name two pages, however long the frame is that both show."""

BANDS: Final = 15
ROWS: Final = 8
"""Of texts with a similarity of 95 none in a million shares no band, at 85 one in a hundred; of
those at 60 a fifth are compared in vain."""

LOWEST_THRESHOLD: Final = 85

_PERMUTATIONS: Final = BANDS * ROWS
_SEED: Final = 42
# Ours, and rensa's own: what was made by another is not compared.
ALGORITHM: Final = 1 * 100 + RMinHash.ALGORITHM_VERSION
_WORD: Final = re.compile(r"\w+")
_IN_A_ROW: Final = 3
_LONG_WORD: Final = 16
_CHARACTERS: Final = 6
_MOST_WORDS: Final = 50_000


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; a script without spaces gives short runs instead."""
    words = _WORD.findall(text.lower())[:_MOST_WORDS]
    if words and sum(map(len, words)) > _LONG_WORD * len(words):
        run = "".join(words)
        return [run[i : i + _CHARACTERS] for i in range(max(1, len(run) - _CHARACTERS + 1))]
    return words


def features(words: Sequence[str]) -> set[str]:
    """Return every sequence of three words."""
    if len(words) <= _IN_A_ROW:
        return {" ".join(words)} if words else set()
    return {f"{a} {b} {c}" for a, b, c in zip(words, words[1:], words[2:], strict=False)}


def similarity(one: set[str], other: set[str]) -> int:
    """Return the share of features in common, 0 to 100; 100 only for all of them."""
    if not one or not other:
        return 0
    common = len(one & other)
    return 100 * common // (len(one) + len(other) - common)


def may_be_alike(words: int, title: str | None, other_title: str | None) -> bool:
    """Tell whether equal texts of so many words make two pages duplicates."""
    if words < FEWEST_WORDS:
        return False
    if words < ENOUGH_WORDS:
        return _plain(title) == _plain(other_title)
    one, other = _title_words(title), _title_words(other_title)
    return one <= other or other <= one


def _plain(title: str | None) -> str:
    return " ".join((title or "").casefold().split())


def _title_words(title: str | None) -> set[str]:
    return set(_WORD.findall((title or "").casefold()))


def signature(of: set[str]) -> bytes:
    """Return the MinHash of features."""
    minhash = RMinHash(num_perm=_PERMUTATIONS, seed=_SEED)
    minhash.update(list(of))
    return struct.pack(f"<{_PERMUTATIONS}I", *minhash.digest())


def estimate(one: bytes, other: bytes) -> int:
    """Return the similarity that two MinHashes say, 0 to 100."""
    pairs = zip(memoryview(one).cast("I"), memoryview(other).cast("I"), strict=True)
    return 100 * sum(a == b for a, b in pairs) // _PERMUTATIONS


def bands(site_id: UUID, of: bytes) -> list[int]:
    """Return one number for each band of a MinHash, of which no other site has the same."""
    size = 4 * ROWS
    return [
        int.from_bytes(
            hashlib.blake2b(
                of[band * size : (band + 1) * size],
                digest_size=8,
                key=site_id.bytes,
                salt=bytes([band]),
            ).digest(),
            signed=True,
        )
        for band in range(BANDS)
    ]
