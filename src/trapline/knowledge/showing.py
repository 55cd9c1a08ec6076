"""What a reader sees of a ranking: pages or passages, the same only once, with their reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from trapline.db.connection import Connection
from trapline.knowledge.fusion import Leg
from trapline.knowledge.highlights import Snippet, snippet
from trapline.knowledge.keyword.analysis import language_of
from trapline.knowledge.sql import searching as queries
from trapline.knowledge.sql.searching import PlaceChunksRow, ShowChunksRow
from trapline.model import ApplicationId, PageId, SiteId, SourceId

Granularity = Literal["page", "chunk"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Where a leg ranked a passage, from 1, and by which score."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with its score and why."""

    chunk_id: int
    score: float
    reasons: Mapping[str, Reason]


@dataclass(frozen=True, slots=True)
class Manner:
    """How results are shown; `terms` are the words to mark, by language."""

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
    reasons: Mapping[str, Reason]
    duplicates: tuple[str, ...]
    """URIs of texts that say the same and are not shown."""
    passages: int
    """How many passages of the page were found."""


def explained(scores: Mapping[int, float], legs: Sequence[Leg]) -> list[Candidate]:
    """Order passages by score, each with its rank and score in every leg."""
    reasons: dict[int, dict[str, Reason]] = {}
    for leg in legs:
        for rank, (chunk, score) in enumerate(leg.ranked, start=1):
            reasons.setdefault(chunk, {})[leg.name] = Reason(rank, score)
    found = [Candidate(chunk, score, reasons[chunk]) for chunk, score in scores.items()]
    return sorted(found, key=lambda one: (-one.score, one.chunk_id))


@dataclass(slots=True)
class _Group:
    """A candidate and those that it stands for."""

    best: Candidate
    place: PlaceChunksRow
    passages: int = 1
    duplicates: dict[str, None] = field(default_factory=dict)


async def page(
    conn: Connection,
    candidates: Sequence[Candidate],
    manner: Manner,
    without: frozenset[int] = frozenset(),
) -> tuple[list[Result], bool]:
    """Return one page of results and whether there are more; texts in `without` are left out."""
    if not candidates:
        return [], False
    rows = await queries.place_chunks(conn, chunk_ids=[one.chunk_id for one in candidates])
    places = {row.chunk_id: row for row in rows if row.entry_id not in without}
    groups = _grouped(candidates, places, manner)
    if manner.after is not None:
        score, chunk = manner.after
        groups = [g for g in groups if (-g.best.score, g.best.chunk_id) > (-score, chunk)]
    chosen = groups[: manner.most]
    details = await queries.show_chunks(conn, chunk_ids=[g.best.chunk_id for g in chosen])
    by_id = {row.chunk_id: row for row in details}
    items = [
        _result(group, by_id[group.best.chunk_id], manner)
        for group in chosen
        if group.best.chunk_id in by_id
    ]
    return items, len(groups) > manner.most


def _grouped(
    candidates: Sequence[Candidate], places: Mapping[int, PlaceChunksRow], manner: Manner
) -> list[_Group]:
    by_entry: dict[int, _Group] = {}
    by_content: dict[bytes, _Group] = {}
    groups: list[_Group] = []
    pages = manner.granularity == "page"
    for one in candidates:
        place = places.get(one.chunk_id)
        if place is None:
            continue
        same = by_content.get(place.content_hash if pages else place.hash)
        if pages and place.entry_id in by_entry:
            by_entry[place.entry_id].passages += 1
        elif manner.collapse and same is not None:
            same.duplicates[place.uri] = None
        else:
            group = _Group(one, place)
            groups.append(group)
            by_entry[place.entry_id] = group
            by_content[place.content_hash if pages else place.hash] = group
    return groups


def _result(group: _Group, row: ShowChunksRow, manner: Manner) -> Result:
    wanted = manner.terms.get(language_of(row.language), frozenset())
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
