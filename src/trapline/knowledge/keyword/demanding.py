"""Which texts have the terms that a query insists on, or has ruled out: all of them, unranked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.asking import Asked, Part
from trapline.knowledge.keyword.postings import Postings, joined
from trapline.knowledge.keyword.ranking import Head, Parts, needed

_NONE: Final = np.zeros(0, np.uint32)

Terms = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """In one language: of each group one set of terms is whole in a text, and none of `barred` is."""

    groups: tuple[tuple[Terms, ...], ...]
    barred: tuple[Terms, ...]

    @classmethod
    def of(cls, asked: Asked, language: str) -> "Demand":
        groups = tuple(tuple(_terms(part, language) for part in group) for group in asked.required)
        ruled_out = (_terms(part, language) for part in asked.excluded if not part.phrase)
        # Stop words are in no posting: nothing can be said of them here.
        return cls(
            tuple(group for group in groups if all(group)), tuple(one for one in ruled_out if one)
        )

    def terms(self) -> set[str]:
        sets = (*self.barred, *(one for group in self.groups for one in group))
        return {term for one in sets for term in one}


def _terms(part: Part, language: str) -> Terms:
    return tuple(part.terms(language))


@dataclass(frozen=True, slots=True)
class Holders:
    """Finds the texts of one segment by their terms."""

    segment: int
    heads: Mapping[tuple[int, str], Head]
    parts: Parts

    async def meeting(self, demand: Demand) -> NDArray[np.uint32] | None:
        """The ordinals, in order, that have what is demanded; None where any has."""
        found = [await self._any(group) for group in demand.groups]
        return reduce(np.intersect1d, found) if found else None

    async def barred(self, demand: Demand) -> NDArray[np.uint32]:
        return await self._any(demand.barred)

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

    async def _postings(self, term: str, head: Head, among: NDArray[np.uint32] | None) -> Postings:
        """Of a term's postings those that may be of some texts, or all of them."""
        parts: Sequence[int] = () if head.starts is None else range(1, len(head.starts))
        if among is not None:
            parts = needed(head, among)
        key = (self.segment, term)
        rest = (await self.parts({key: parts})).get(key, ()) if len(parts) else ()
        return joined([head.first, *rest])
