"""Phrase match: reads passages to find a phrase, the exact words side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from trapline.db.connection import Connection
from trapline.knowledge.keyword.analysis import language_of, sequence, terms
from trapline.knowledge.query_syntax import ParsedQuery, QueryPart
from trapline.knowledge.sql import search as queries
from trapline.knowledge.sql.search import ChunkTextsRow

MOST_READ: Final = 2_000
"""The most passages that are read for one query."""

_AT_ONCE: Final = 200


async def filter_by_phrases(
    conn: Connection, query: ParsedQuery, ranked: Sequence[tuple[int, float]], most: int
) -> list[tuple[int, float]]:
    """Return the best of ranked passages whose text satisfies the query's phrases."""
    kept: list[tuple[int, float]] = []
    for at in range(0, min(len(ranked), MOST_READ), _AT_ONCE):
        some = ranked[at : at + _AT_ONCE]
        rows = await queries.chunk_texts(conn, chunk_ids=[chunk for chunk, _ in some])
        fits = {row.chunk_id for row in rows if _matches(query, _Text(row))}
        kept += [hit for hit in some if hit[0] in fits]
        if len(kept) >= most:
            break
    return kept[:most]


@dataclass
class _Text:
    row: ChunkTextsRow

    @cached_property
    def sequences(self) -> list[str]:
        return [sequence(one) for one in self._pieces()]

    @cached_property
    def terms(self) -> set[str]:
        language = language_of(self.row.language)
        return {term for one in self._pieces() for term in terms(one, language)}

    def _pieces(self) -> Iterator[str]:
        """A phrase does not span a heading and the text below it."""
        yield self.row.title or ""
        yield from self.row.headings
        yield self.row.words

    def has(self, part: QueryPart) -> bool:
        if part.phrase:
            phrase = sequence(part.words)
            return any(phrase in one for one in self.sequences)
        return self.terms.issuperset(part.terms(language_of(self.row.language)))


def _matches(query: ParsedQuery, text: _Text) -> bool:
    required = all(any(text.has(part) for part in group) for group in query.required)
    return required and not any(text.has(part) for part in query.excluded if part.phrase)
