"""Boolean filter: all texts with the terms that a query requires or excludes, unranked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.keyword.postings import Postings, concatenate
from trapline.knowledge.keyword.ranking import PostingHead, ReadParts, needed_parts
from trapline.knowledge.query_syntax import ParsedQuery, QueryPart

_NONE: Final = np.zeros(0, np.uint32)

Terms = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BooleanFilter:
    """For one language: a text must have one whole set of terms of each group, and none of `excluded`."""

    groups: tuple[tuple[Terms, ...], ...]
    excluded: tuple[Terms, ...]

    @classmethod
    def of(cls, query: ParsedQuery, language: str) -> "BooleanFilter":
        groups = tuple(tuple(_terms(part, language) for part in group) for group in query.required)
        ruled_out = (_terms(part, language) for part in query.excluded if not part.phrase)
        # Stop words have no postings: they cannot be filtered here.
        return cls(
            tuple(group for group in groups if all(group)), tuple(one for one in ruled_out if one)
        )

    def terms(self) -> set[str]:
        sets = (*self.excluded, *(one for group in self.groups for one in group))
        return {term for one in sets for term in one}


def _terms(part: QueryPart, language: str) -> Terms:
    return tuple(part.terms(language))


@dataclass(frozen=True, slots=True)
class SegmentMatcher:
    """Finds the texts of one segment that match a boolean filter."""

    segment: int
    heads: Mapping[tuple[int, str], PostingHead]
    parts: ReadParts

    async def matching(self, filter_: BooleanFilter) -> NDArray[np.uint32] | None:
        """The sorted ordinals with the required terms; None if nothing is required."""
        found = [await self._any(group) for group in filter_.groups]
        return reduce(np.intersect1d, found) if found else None

    async def excluded(self, filter_: BooleanFilter) -> NDArray[np.uint32]:
        return await self._any(filter_.excluded)

    async def _any(self, sets: Sequence[Terms]) -> NDArray[np.uint32]:
        return reduce(np.union1d, [await self._all(terms) for terms in sets], _NONE)

    async def _all(self, terms: Terms) -> NDArray[np.uint32]:
        heads = [(term, self.heads.get((self.segment, term))) for term in terms]
        known = [(term, head) for term, head in heads if head is not None]
        if len(known) < len(heads):
            return _NONE
        (rarest, head), *others = sorted(known, key=lambda pair: pair[1].texts)
        found = (await self._postings(rarest, head, None)).ordinals
        for term, other in others:
            theirs = (await self._postings(term, other, found)).ordinals
            places = np.minimum(np.searchsorted(theirs, found), len(theirs) - 1)
            found = found[theirs[places] == found]
        return found

    async def _postings(
        self, term: str, head: PostingHead, among: NDArray[np.uint32] | None
    ) -> Postings:
        """Read a term's postings: all, or the parts that may contain some ordinals."""
        parts: Sequence[int] = () if head.starts is None else range(1, len(head.starts))
        if among is not None:
            parts = needed_parts(head, among)
        key = (self.segment, term)
        rest = (await self.parts({key: parts})).get(key, ()) if len(parts) else ()
        return concatenate([head.first, *rest])
