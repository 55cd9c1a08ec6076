"""Result assembly: a ranking becomes pages or passages without duplicates, each with its ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from trapline.db.connection import Connection
from trapline.knowledge.fusion import RankedList
from trapline.knowledge.highlights import Snippet, snippet
from trapline.knowledge.keyword.analysis import language_of
from trapline.knowledge.sql import search as queries
from trapline.knowledge.sql.search import ChunkDetailsRow, ChunkEntriesRow
from trapline.model import ApplicationId, PageId, SiteId, SourceId

Granularity = Literal["page", "chunk"]


@dataclass(frozen=True, slots=True)
class RetrieverRank:
    """The rank of a passage in one ranking, from 1, and its score there."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with its score and its rank in each ranking."""

    chunk_id: int
    score: float
    reasons: Mapping[str, RetrieverRank]


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """How results are assembled; `terms` are the terms to mark, by language."""

    granularity: Granularity
    collapse: bool
    most: int
    after: tuple[float, int] | None
    terms: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A passage, or a page by its best passage."""

    chunk_id: int
    entry_id: int
    source_id: SourceId
    source_name: str
    source_kind: str
    site_id: SiteId | None
    application_id: ApplicationId | None
    page_id: PageId | None
    uri: str
    path: str
    title: str | None
    language: str
    content_type: str | None
    dated_at: datetime
    headings: tuple[str, ...]
    words: str
    starts_at: int
    ends_at: int
    snippet: Snippet
    score: float
    reasons: Mapping[str, RetrieverRank]
    duplicates: tuple[str, ...]
    """URIs of identical texts, which are not shown."""
    passages: int
    """The number of found passages of the page."""


def rank_candidates(scores: Mapping[int, float], rankings: Sequence[RankedList]) -> list[Candidate]:
    """Sort passages by score, each with its rank and score in every ranking."""
    reasons: dict[int, dict[str, RetrieverRank]] = {}
    for ranking in rankings:
        for rank, (chunk, score) in enumerate(ranking.ranked, start=1):
            reasons.setdefault(chunk, {})[ranking.name] = RetrieverRank(rank, score)
    found = [Candidate(chunk, score, reasons[chunk]) for chunk, score in scores.items()]
    return sorted(found, key=lambda one: (-one.score, one.chunk_id))


@dataclass(slots=True)
class _ResultGroup:
    """A candidate and those that are grouped under it."""

    best: Candidate
    row: ChunkEntriesRow
    passages: int = 1
    duplicates: dict[str, None] = field(default_factory=dict)


async def result_page(
    conn: Connection,
    candidates: Sequence[Candidate],
    options: ResultOptions,
    excluded_entries: frozenset[int] = frozenset(),
) -> tuple[list[Result], bool]:
    """Return one page of results without `excluded_entries`, and whether there are more."""
    if not candidates:
        return [], False
    found = await queries.chunk_entries(conn, chunk_ids=[one.chunk_id for one in candidates])
    rows = {row.chunk_id: row for row in found if row.entry_id not in excluded_entries}
    groups = _group(candidates, rows, options)
    if options.after is not None:
        score, chunk = options.after
        groups = [g for g in groups if (-g.best.score, g.best.chunk_id) > (-score, chunk)]
    chosen = groups[: options.most]
    details = await queries.chunk_details(conn, chunk_ids=[g.best.chunk_id for g in chosen])
    by_id = {row.chunk_id: row for row in details}
    items = [
        _result(group, by_id[group.best.chunk_id], options)
        for group in chosen
        if group.best.chunk_id in by_id
    ]
    return items, len(groups) > options.most


def _group(
    candidates: Sequence[Candidate], rows: Mapping[int, ChunkEntriesRow], options: ResultOptions
) -> list[_ResultGroup]:
    by_entry: dict[int, _ResultGroup] = {}
    by_content: dict[bytes, _ResultGroup] = {}
    groups: list[_ResultGroup] = []
    pages = options.granularity == "page"
    for one in candidates:
        row = rows.get(one.chunk_id)
        if row is None:
            continue
        same = by_content.get(row.content_hash if pages else row.hash)
        if pages and row.entry_id in by_entry:
            by_entry[row.entry_id].passages += 1
        elif options.collapse and same is not None:
            same.duplicates[row.uri] = None
        else:
            group = _ResultGroup(one, row)
            groups.append(group)
            by_entry[row.entry_id] = group
            by_content[row.content_hash if pages else row.hash] = group
    return groups


def _result(group: _ResultGroup, row: ChunkDetailsRow, options: ResultOptions) -> Result:
    wanted = options.terms.get(language_of(row.language), frozenset())
    return Result(
        chunk_id=row.chunk_id,
        entry_id=row.entry_id,
        source_id=row.source_id,
        source_name=row.source_name,
        source_kind=row.source_kind,
        site_id=row.site_id,
        application_id=row.application_id,
        page_id=row.page_id,
        uri=row.uri,
        path=row.path,
        title=row.title,
        language=row.language,
        content_type=row.content_type,
        dated_at=row.dated_at,
        headings=tuple(row.headings),
        words=row.words,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        snippet=snippet(row.words, row.language, wanted),
        score=group.best.score,
        reasons=group.best.reasons,
        duplicates=tuple(uri for uri in group.duplicates if uri != row.uri),
        passages=group.passages,
    )
