"""Text similarity: shingles of words, their Jaccard index, MinHash, and LSH bands to find candidates.

A text's features are its shingles of three words (or of characters, in scripts without spaces). The
Jaccard index of two feature sets, 0 to 100, is their similarity. MinHash estimates it; texts that share
one of its bands are compared in full.

Words and features are 64-bit hashes, the same bit by bit from numpy and from the compiled code.
`ALGORITHM` is stored with them.
"""

import hashlib
import re
from functools import cache, lru_cache
from struct import Struct
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from trapline import native

Hashes: TypeAlias = npt.NDArray[np.uint64]

FEWEST_WORDS: Final = 25
"""A shorter text is boilerplate, such as “Page not found”, and similar to nothing."""

ENOUGH_WORDS: Final = 120
"""Below this the titles must be equal: the text may be all boilerplate, as a newsletter's invitation.
From here on one title may contain the other, as “A, printed” does; two titles with words of their own
name two pages, however much boilerplate they share."""

BANDS: Final = 15
ROWS: Final = 8
"""Texts with a similarity of 95 share a band with all but one in a million, at 85 all but one in a
hundred; a fifth of those at 60 are compared in vain."""

LOWEST_THRESHOLD: Final = 85

_PERMUTATIONS: Final = BANDS * ROWS
_SEED: Final = 42
# The layouts of a MinHash, of its bands, and of the hashes of these.
_SIGNATURE: Final = Struct(f"<{_PERMUTATIONS}I")
_CUT: Final = Struct(f"{4 * ROWS}s" * BANDS)
_NUMBERS: Final = Struct(f">{BANDS}q")
# Our version and rensa's: hashes of different versions are not compared.
ALGORITHM: Final = 2 * 100 + RMinHash.ALGORITHM_VERSION
_WORD: Final = re.compile(r"\w+")
_IN_A_ROW: Final = 3
_LONG_WORD: Final = 16
_CHARACTERS: Final = 6
_MOST_WORDS: Final = 50_000
_PLANE: Final = 1 << 16
# An odd constant without pattern: a difference in one letter changes every bit.
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_POWERS: Final = np.cumprod(np.full(256, 0xD6E8FEB86659FD93, dtype=np.uint64))


@cache
def _letters() -> npt.NDArray[np.uint32]:
    """The lower case of each word character of the basic plane; 0 for other characters."""
    return np.array([_letter(code) for code in range(_PLANE)], dtype=np.uint32)


def _letter(code: int) -> int:
    letter = chr(code)
    return ord(letter.lower()[0]) if letter.isalnum() or letter == "_" else 0


def _read_letters(text: str) -> npt.NDArray[np.uint32]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    letters: npt.NDArray[np.uint32] = _letters().take(codes, mode="clip")
    beyond = np.flatnonzero(codes >= _PLANE - 1)
    if len(beyond):
        letters[beyond] = [_letter(code) for code in codes[beyond].tolist()]
    return letters


def words_of(text: str) -> Hashes:
    """Return the hashes of the lower-case words; of short runs in a script without spaces."""
    letters = _read_letters(text)
    inside = letters != 0
    edges = np.flatnonzero(np.diff(inside, prepend=False, append=False))
    starts, ends = edges[::2][:_MOST_WORDS], edges[1::2][:_MOST_WORDS]
    if not len(starts):
        return np.zeros(0, dtype=np.uint64)
    written = letters[: ends[-1]][inside[: ends[-1]]].astype(np.uint64)
    if len(written) > _LONG_WORD * len(starts):
        return _runs(written)
    lengths = ends - starts
    first = np.cumsum(lengths) - lengths
    places = np.arange(len(written)) - np.repeat(first, lengths)
    return _mixed(np.add.reduceat(written * _POWERS.take(places, mode="wrap"), first))


def _runs(letters: Hashes) -> Hashes:
    """Hash every few letters in a row."""
    size = min(_CHARACTERS, len(letters))
    count = len(letters) - size + 1
    sums = sum(letters[n : n + count] * _POWERS[n] for n in range(size))
    return _mixed(np.asarray(sums, dtype=np.uint64))


def _mixed(numbers: Hashes) -> Hashes:
    """Mix the bits, so that each depends on all others."""
    for shift in (np.uint64(31), np.uint64(29)):
        numbers = (numbers ^ (numbers >> shift)) * _MULTIPLIER
    return numbers ^ (numbers >> np.uint64(32))


def features(words: Hashes) -> Hashes:
    """Return the distinct hashes of three words in a row, ascending."""
    if not len(words):
        return words
    found = _sequences(words)
    found.sort()
    # numpy's own `unique` takes five times as long.
    first = np.ones(len(found), dtype=np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first]


def _sequences(words: Hashes) -> Hashes:
    """Return the hashes of three words in a row, in order."""
    row = min(_IN_A_ROW, len(words))
    count = len(words) - row + 1
    sums = sum(words[n : n + count] * _POWERS[n] for n in range(row))
    return _mixed(np.asarray(sums, dtype=np.uint64))


def similarity(one: Hashes, other: Hashes) -> int:
    """Return the Jaccard index of two feature sets, 0 to 100; 100 only if they are equal."""
    if not len(one) or not len(other):
        return 0
    common = len(np.intersect1d(one, other, assume_unique=True))
    return 100 * common // (len(one) + len(other) - common)


def may_be_duplicates(words: int, title: str | None, other_title: str | None) -> bool:
    """Tell whether pages with similar texts of so many words can be duplicates, by their titles."""
    if words < FEWEST_WORDS:
        return False
    if title == other_title:
        return True
    if words < ENOUGH_WORDS:
        return _plain(title) == _plain(other_title)
    one, other = _title_words(title), _title_words(other_title)
    return one <= other or other <= one


def _plain(title: str | None) -> str:
    return " ".join((title or "").casefold().split())


def _title_words(title: str | None) -> set[str]:
    return set(_WORD.findall((title or "").casefold()))


def signature(of: Hashes) -> bytes:
    """Return the MinHash of features."""
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(of, [0, len(of)], _PERMUTATIONS, _SEED)
    return _SIGNATURE.pack(*matrix.to_rows()[0])


def estimate(one: bytes, other: bytes) -> int:
    """Estimate the similarity from two MinHashes, 0 to 100."""
    pairs = zip(memoryview(one).cast("I"), memoryview(other).cast("I"), strict=True)
    return 100 * sum(a == b for a, b in pairs) // _PERMUTATIONS


def bands(site_id: UUID, of: bytes) -> list[int]:
    """Return one hash for each band of a MinHash, keyed by the site."""
    digests = []
    for hasher, band in zip(_band_hashers(site_id), _CUT.unpack(of), strict=True):
        hashed = hasher.copy()
        hashed.update(band)
        digests.append(hashed.digest())
    return list(_NUMBERS.unpack(b"".join(digests)))


@lru_cache(maxsize=100)
def _band_hashers(site_id: UUID) -> tuple[hashlib.blake2b, ...]:
    """Return keyed hashers for the bands of a site; creating them anew takes twice as long."""
    return tuple(
        hashlib.blake2b(digest_size=8, key=site_id.bytes, salt=bytes([band]))
        for band in range(BANDS)
    )


def _compiled_words(text: str) -> Hashes:
    return np.frombuffer(native.library.text_words(text), dtype=np.uint64)


def _compiled_features(words: Hashes) -> Hashes:
    return np.frombuffer(native.library.text_features(words), dtype=np.uint64)


if native.available:
    words_of = _compiled_words
    features = _compiled_features
