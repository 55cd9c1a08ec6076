"""How alike two texts are: sets of word sequences, their MinHash, and bands to find it by.

Words in a row (or characters, in scripts that write no spaces) make a text's features. The share of
features that two texts have in common, 0 to 100, is their similarity. The MinHash of all features
estimates it; texts that share one of its bands are compared in full.

Words and features are kept as numbers of 64 bits. They are made of the letters by compiled code where
there is some (`native/`), else by numpy for a whole text at a time: bit by bit the same. The numbers are
stored with nothing but `ALGORITHM`.
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

try:
    from trapline.store import _native
except ImportError:
    _native = None  # type: ignore[assignment]

Numbers: TypeAlias = npt.NDArray[np.uint64]

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
# All numbers of a MinHash, its bands, and the numbers of these.
_SIGNATURE: Final = Struct(f"<{_PERMUTATIONS}I")
_CUT: Final = Struct(f"{4 * ROWS}s" * BANDS)
_NUMBERS: Final = Struct(f">{BANDS}q")
# Ours, and rensa's own: what was made by another is not compared.
ALGORITHM: Final = 2 * 100 + RMinHash.ALGORITHM_VERSION
_WORD: Final = re.compile(r"\w+")
_IN_A_ROW: Final = 3
_LONG_WORD: Final = 16
_CHARACTERS: Final = 6
_MOST_WORDS: Final = 50_000
_PLANE: Final = 1 << 16
# Odd, and of no pattern: what differs in one letter differs in every bit.
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_POWERS: Final = np.cumprod(np.full(256, 0xD6E8FEB86659FD93, dtype=np.uint64))


@cache
def _letters() -> npt.NDArray[np.uint32]:
    """The lower case of each letter of the first plane that is part of words; 0 for what is not."""
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


def words_of(text: str) -> Numbers:
    """Return the words of a text in lower case; a script without spaces gives short runs instead."""
    if _native is None:
        return numpy_words(text)
    return np.frombuffer(_native.words(text), dtype=np.uint64)


def numpy_words(text: str) -> Numbers:
    """Return what the compiled code gives for `words_of`."""
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


def _runs(letters: Numbers) -> Numbers:
    """One number for every few letters in a row."""
    size = min(_CHARACTERS, len(letters))
    count = len(letters) - size + 1
    sums = sum(letters[n : n + count] * _POWERS[n] for n in range(size))
    return _mixed(np.asarray(sums, dtype=np.uint64))


def _mixed(numbers: Numbers) -> Numbers:
    """Let every bit of a number depend on all of them."""
    for shift in (np.uint64(31), np.uint64(29)):
        numbers = (numbers ^ (numbers >> shift)) * _MULTIPLIER
    return numbers ^ (numbers >> np.uint64(32))


def features(words: Numbers) -> Numbers:
    """Return every sequence of three words, each once, ascending."""
    if _native is None:
        return numpy_features(words)
    return np.frombuffer(_native.features(words), dtype=np.uint64)


def numpy_features(words: Numbers) -> Numbers:
    """Return what the compiled code gives for `features`."""
    if not len(words):
        return words
    found = numpy_sequences(words)
    found.sort()
    # numpy's own `unique` takes five times as long.
    first = np.ones(len(found), dtype=np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first]


def numpy_sequences(words: Numbers) -> Numbers:
    """Return the number of every three words in a row, in their order."""
    row = min(_IN_A_ROW, len(words))
    count = len(words) - row + 1
    sums = sum(words[n : n + count] * _POWERS[n] for n in range(row))
    return _mixed(np.asarray(sums, dtype=np.uint64))


def similarity(one: Numbers, other: Numbers) -> int:
    """Return the share of features in common, 0 to 100; 100 only for all of them."""
    if not len(one) or not len(other):
        return 0
    common = len(np.intersect1d(one, other, assume_unique=True))
    return 100 * common // (len(one) + len(other) - common)


def may_be_alike(words: int, title: str | None, other_title: str | None) -> bool:
    """Tell whether equal texts of so many words make two pages duplicates."""
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


def signature(of: Numbers) -> bytes:
    """Return the MinHash of features."""
    made = RMinHash.digest_matrix_from_flat_token_hashes(of, [0, len(of)], _PERMUTATIONS, _SEED)
    return _SIGNATURE.pack(*made.to_rows()[0])


def estimate(one: bytes, other: bytes) -> int:
    """Return the similarity that two MinHashes say, 0 to 100."""
    pairs = zip(memoryview(one).cast("I"), memoryview(other).cast("I"), strict=True)
    return 100 * sum(a == b for a, b in pairs) // _PERMUTATIONS


def bands(site_id: UUID, of: bytes) -> list[int]:
    """Return one number for each band of a MinHash, of which no other site has the same."""
    found = []
    for started, band in zip(_started(site_id), _CUT.unpack(of), strict=True):
        hashed = started.copy()
        hashed.update(band)
        found.append(hashed.digest())
    return list(_NUMBERS.unpack(b"".join(found)))


@lru_cache(maxsize=100)
def _started(site_id: UUID) -> tuple[hashlib.blake2b, ...]:
    """Return what hashes the bands of a site; to begin each anew takes twice as long."""
    return tuple(
        hashlib.blake2b(digest_size=8, key=site_id.bytes, salt=bytes([band]))
        for band in range(BANDS)
    )
