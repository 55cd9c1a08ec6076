"""Segments: immutable inverted indexes of some texts. New texts make a new segment; merges join many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.keyword.postings import Postings, concatenate, length_codes


@dataclass(frozen=True, slots=True)
class Segment:
    """`chunk_ids[ordinal]` is the chunk of a posting; `length` is the sum of all lengths."""

    chunk_ids: NDArray[np.int64]
    length: int
    postings: dict[str, Postings]


def build_segment(texts: Mapping[int, Mapping[str, int]]) -> Segment:
    """Build a segment from the term counts of chunks."""
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
    """The mapping from ordinals of old segments to those of the merged one."""

    chunk_ids: NDArray[np.int64]
    # For all old texts in order, whether each still exists.
    alive: NDArray[np.bool_]
    # For each old segment the new ordinal of each old one; -1 if the text is deleted.
    ordinals: Sequence[NDArray[np.int64]]


def renumber(segments: Sequence[NDArray[np.int64]], gone: Iterable[int]) -> Renumbering:
    every = np.concatenate(segments)
    alive = ~np.isin(every, np.fromiter(gone, np.int64))
    places = np.where(alive, np.cumsum(alive) - 1, -1)
    edges = np.cumsum([len(ids) for ids in segments])[:-1]
    return Renumbering(every[alive], alive, np.split(places, edges))


def merge_postings(
    rows: Iterable[tuple[str, int, Postings]], new: Renumbering
) -> Iterator[tuple[str, Postings]]:
    """Merge postings sorted by term, segment and ordinal; yield one term at a time.

    A row is a term, the number of its old segment and (a part of) its postings there.
    """
    term: str | None = None
    parts: list[Postings] = []
    for name, segment, postings in rows:
        if name != term:
            yield from _joined_term(term, parts)
            term, parts = name, []
        parts.append(_renumber_postings(postings, new.ordinals[segment]))
    yield from _joined_term(term, parts)


def _renumber_postings(postings: Postings, places: NDArray[np.int64]) -> Postings:
    ordinals = places[postings.ordinals]
    alive = ordinals >= 0
    return Postings(
        ordinals[alive].astype(np.uint32), postings.counts[alive], postings.lengths[alive]
    )


def _joined_term(term: str | None, parts: list[Postings]) -> Iterator[tuple[str, Postings]]:
    if term is not None and any(len(part) for part in parts):
        yield term, concatenate(parts)
