"""Reads passages to tell whether they have a phrase: words exactly as they are, side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from trapline.db.connection import Connection
from trapline.knowledge.asking import Asked, Part
from trapline.knowledge.keyword.analysis import language_of, sequence, terms
from trapline.knowledge.sql import searching as queries
from trapline.knowledge.sql.searching import PassageTextsRow

MOST: Final = 2_000
"""Passages that are read for one query at most."""

_AT_ONCE: Final = 200


async def holding(
    conn: Connection, asked: Asked, ranked: Sequence[tuple[int, float]], most: int
) -> list[tuple[int, float]]:
    """Return the best of ranked passages whose text is as asked."""
    kept: list[tuple[int, float]] = []
    for at in range(0, min(len(ranked), MOST), _AT_ONCE):
        some = ranked[at : at + _AT_ONCE]
        rows = await queries.passage_texts(conn, chunk_ids=[chunk for chunk, _ in some])
        fits = {row.chunk_id for row in rows if _fits(asked, _Text(row))}
        kept += [hit for hit in some if hit[0] in fits]
        if len(kept) >= most:
            break
    return kept[:most]


@dataclass
class _Text:
    row: PassageTextsRow

    @cached_property
    def sequences(self) -> list[str]:
        return [sequence(one) for one in self._pieces()]

    @cached_property
    def terms(self) -> set[str]:
        language = language_of(self.row.language)
        return {term for one in self._pieces() for term in terms(one, language)}

    def _pieces(self) -> Iterator[str]:
        """No phrase goes from a heading on into the text."""
        yield self.row.title or ""
        yield from self.row.headings
        yield self.row.words

    def has(self, part: Part) -> bool:
        if part.phrase:
            phrase = sequence(part.words)
            return any(phrase in one for one in self.sequences)
        return self.terms.issuperset(part.terms(language_of(self.row.language)))


def _fits(asked: Asked, text: _Text) -> bool:
    required = all(any(text.has(part) for part in group) for group in asked.required)
    return required and not any(text.has(part) for part in asked.excluded if part.phrase)
