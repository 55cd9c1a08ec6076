"""Segments: immutable sets of indexed texts. New texts are a new segment; many become one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.keyword.postings import Postings, joined, length_codes


@dataclass(frozen=True, slots=True)
class Segment:
    """`chunk_ids[ordinal]` is the text that a posting means; `length` is that of all together."""

    chunk_ids: NDArray[np.int64]
    length: int
    postings: dict[str, Postings]


def segment_of(texts: Mapping[int, Mapping[str, int]]) -> Segment:
    """Index texts: for each chunk its terms, with how often each stands in it."""
    ids = sorted(texts)
    lengths = np.array([sum(texts[chunk].values()) for chunk in ids], np.int64)
    numbers: dict[str, int] = {}
    found = [
        (numbers.setdefault(term, len(numbers)), ordinal, count)
        for ordinal, chunk in enumerate(ids)
        for term, count in texts[chunk].items()
    ]
    table = np.array(found, np.int64).reshape(-1, 3)
    # Stable, so that ordinals stay in order within each term.
    table = table[np.argsort(table[:, 0], kind="stable")]
    ordinals = table[:, 1].astype(np.uint32)
    every = Postings(
        ordinals,
        np.minimum(table[:, 2], 255).astype(np.uint8),
        length_codes(lengths)[ordinals],
    )
    ends = np.searchsorted(table[:, 0], np.arange(len(numbers)), side="right").tolist()
    starts = [0, *ends[:-1]]
    postings = {term: every.part(starts[number], ends[number]) for term, number in numbers.items()}
    return Segment(np.array(ids, np.int64), int(lengths.sum()), postings)


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Where the texts of several segments are in the one that they become."""

    chunk_ids: NDArray[np.int64]
    # Of all old ones, one after the other, which are left.
    alive: NDArray[np.bool_]
    # For each old segment the new ordinal of every old one; -1 where the text is gone.
    ordinals: Sequence[NDArray[np.int64]]


def renumbered(segments: Sequence[NDArray[np.int64]], gone: Iterable[int]) -> Renumbering:
    every = np.concatenate(segments)
    alive = ~np.isin(every, np.fromiter(gone, np.int64))
    places = np.where(alive, np.cumsum(alive) - 1, -1)
    edges = np.cumsum([len(ids) for ids in segments])[:-1]
    return Renumbering(every[alive], alive, np.split(places, edges))


def merged(
    rows: Iterable[tuple[str, int, Postings]], new: Renumbering
) -> Iterator[tuple[str, Postings]]:
    """Merge postings that come in order of term, segment and ordinal; one term at a time.

    A row is a term, the number of its old segment and (a part of) its postings there.
    """
    term: str | None = None
    parts: list[Postings] = []
    for name, segment, postings in rows:
        if name != term:
            yield from _whole(term, parts)
            term, parts = name, []
        parts.append(_moved(postings, new.ordinals[segment]))
    yield from _whole(term, parts)


def _moved(postings: Postings, places: NDArray[np.int64]) -> Postings:
    ordinals = places[postings.ordinals]
    alive = ordinals >= 0
    return Postings(
        ordinals[alive].astype(np.uint32), postings.counts[alive], postings.lengths[alive]
    )


def _whole(term: str | None, parts: list[Postings]) -> Iterator[tuple[str, Postings]]:
    if term is not None and any(len(part) for part in parts):
        yield term, joined(parts)
