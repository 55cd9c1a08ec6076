"""Duplicate detection: counts contents, and groups pages with similar contents by MinHash.

Visits only insert sightings. Maintenance groups them here: it counts each content of a site, compares a
new one with those that share a band of its MinHash, and assigns its pages to its group. None of this
runs in the transaction that finishes a task.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trapline.db.connection import Connection
from trapline.errors import Conflict, InvalidInput, NotFound
from trapline.model import PageId, SiteId
from trapline.store import similarity as text_similarity
from trapline.store.similarity import Hashes
from trapline.store.sql import duplicates as queries
from trapline.store.sql.duplicates import CountContentsRow, LikenessRow, TakeSightingsRow

THRESHOLD: Final = 95
BATCH_SIZE: Final = 500
"""Sightings grouped in one transaction."""
_LOCK: Final = 0x73_64_75_70  # "sdup"
_MOST_CANDIDATES: Final = 50

Key = tuple[SiteId, bytes]


@dataclass(slots=True)
class _NewContent:
    """A content that has no group yet."""

    row: CountContentsRow
    threshold: int
    words: int = 0
    features: Hashes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    signature: bytes = b""
    bands: list[int] = field(default_factory=list)
    group_id: int | None = None
    similarity: int | None = None

    @property
    def leads(self) -> bool:
        """Whether it is the leader of its group."""
        return self.group_id == self.row.content_id

    def join(self, group_id: int, similarity: int, title: str | None) -> None:
        """Join the group of a content with that title, if it is the most similar so far."""
        alike = text_similarity.may_be_duplicates(self.words, self.row.title, title)
        if alike and similarity >= self.threshold and similarity > (self.similarity or 0):
            self.group_id, self.similarity = group_id, similarity


@dataclass(frozen=True, slots=True)
class _Membership:
    """The group of a content."""

    id: int | None
    similarity: int | None
    words: int


async def group_sightings(conn: Connection) -> int:
    """Count and group a batch of sightings; return fewer than BATCH_SIZE if none are left."""
    await queries.lock_grouping(conn, key=_LOCK)
    sightings = await queries.take_sightings(conn, most=BATCH_SIZE)
    if not sightings:
        return 0
    contents = {(c.site_id, c.content_hash): c for c in await _count(conn, sightings)}
    groups = {key: _Membership(c.group_id, c.similarity, c.words) for key, c in contents.items()}
    groups |= await _group_new(conn, [c for c in contents.values() if _is_new(c)])
    await _assign_pages(conn, sightings, contents, groups)
    return len(sightings)


def _is_new(content: CountContentsRow) -> bool:
    return content.group_id is None and content.words == 0


async def _count(conn: Connection, sightings: Sequence[TakeSightingsRow]) -> list[CountContentsRow]:
    seen: dict[Key, list[TakeSightingsRow]] = {}
    for sighting in sightings:
        seen.setdefault((sighting.site_id, sighting.content_hash), []).append(sighting)
    # In key order, so that two processes cannot deadlock.
    ordered = [seen[key] for key in sorted(seen)]
    return await queries.count_contents(
        conn,
        organisation_ids=[rows[0].organisation_id for rows in ordered],
        site_ids=[rows[0].site_id for rows in ordered],
        content_hashes=[rows[0].content_hash for rows in ordered],
        page_ids=[rows[0].page_id for rows in ordered],
        version_ids=[rows[0].version_id for rows in ordered],
        titles=[rows[0].title for rows in ordered],
        counts=[len(rows) for rows in ordered],
        first_ats=[min(row.seen_at for row in rows) for rows in ordered],
        last_ats=[max(row.seen_at for row in rows) for rows in ordered],
    )


async def _group_new(conn: Connection, new: Sequence[CountContentsRow]) -> dict[Key, _Membership]:
    """Find the groups of new contents, in the order of their first sighting."""
    if not new:
        return {}
    candidates = await _read(conn, sorted(new, key=lambda row: row.first_version_id))
    comparable = [c for c in candidates if c.words >= text_similarity.FEWEST_WORDS]
    await _compare_with_stored(conn, comparable)
    _compare_within_batch(comparable)
    await _write(conn, candidates)
    return {
        (c.row.site_id, c.row.content_hash): _Membership(c.group_id, c.similarity, c.words)
        for c in candidates
    }


async def _read(conn: Connection, rows: Sequence[CountContentsRow]) -> list[_NewContent]:
    texts = await _texts(conn, (row.first_version_id for row in rows))
    thresholds = {
        row.site_id: row.threshold
        for row in await queries.thresholds_of(conn, site_ids=list({row.site_id for row in rows}))
    }
    candidates = []
    for row in rows:
        words = text_similarity.words_of(texts.get(row.first_version_id, ""))
        found = _NewContent(row, thresholds.get(row.site_id, THRESHOLD), words=len(words))
        if found.words >= text_similarity.FEWEST_WORDS:
            found.features = text_similarity.features(words)
            found.signature = text_similarity.signature(found.features)
            found.bands = text_similarity.bands(row.site_id, found.signature)
        candidates.append(found)
    return candidates


async def _texts(conn: Connection, version_ids: Iterable[int]) -> dict[int, str]:
    rows = await queries.texts_of(conn, version_ids=list(set(version_ids)))
    return {row.version_id: row.text for row in rows}


async def _compare_with_stored(conn: Connection, candidates: Sequence[_NewContent]) -> None:
    near = await queries.similar_contents(
        conn,
        numbers=list(range(len(candidates))),
        bands=[_array(c.bands) for c in candidates],
        algorithm=text_similarity.ALGORITHM,
        most=_MOST_CANDIDATES,
    )
    texts = await _texts(conn, (row.first_version_id for row in near))
    for row in near:
        candidate, text = candidates[row.number], texts.get(row.first_version_id)
        if text is None:
            # Its version is deleted; its MinHash still gives an estimate.
            alike = text_similarity.estimate(candidate.signature, row.signature)
        else:
            other = text_similarity.features(text_similarity.words_of(text))
            alike = text_similarity.similarity(candidate.features, other)
        candidate.join(row.content_id, alike, row.title)


def _compare_within_batch(candidates: Sequence[_NewContent]) -> None:
    """Let contents without a group lead one, which later ones of this batch can join."""
    leaders: dict[int, list[_NewContent]] = {}
    for candidate in candidates:
        near = {id(c): c for band in candidate.bands for c in leaders.get(band, ())}
        for leader in list(near.values())[:_MOST_CANDIDATES]:
            alike = text_similarity.similarity(candidate.features, leader.features)
            candidate.join(leader.row.content_id, alike, leader.row.title)
        if candidate.group_id is None:
            candidate.group_id, candidate.similarity = candidate.row.content_id, 100
            for band in candidate.bands:
                leaders.setdefault(band, []).append(candidate)


async def _write(conn: Connection, candidates: Sequence[_NewContent]) -> None:
    await queries.group_contents(
        conn,
        content_ids=[c.row.content_id for c in candidates],
        group_ids=[c.group_id for c in candidates],
        similarities=[c.similarity for c in candidates],
        # Not 0, which means not yet compared.
        words=[max(1, c.words) for c in candidates],
    )
    leaders = [c for c in candidates if c.leads]
    await queries.add_fingerprints(
        conn,
        content_ids=[c.row.content_id for c in leaders],
        organisation_ids=[c.row.organisation_id for c in leaders],
        signatures=[c.signature for c in leaders],
        bands=[_array(c.bands) for c in leaders],
        algorithm=text_similarity.ALGORITHM,
    )


async def _assign_pages(
    conn: Connection,
    sightings: Sequence[TakeSightingsRow],
    contents: dict[Key, CountContentsRow],
    groups: dict[Key, _Membership],
) -> None:
    latest = {s.page_id: s for s in sightings}
    assigned = []
    for seen in latest.values():
        content, group = (
            contents[seen.site_id, seen.content_hash],
            groups[seen.site_id, seen.content_hash],
        )
        joins = text_similarity.may_be_duplicates(group.words, seen.title, content.title)
        assigned.append((seen, content.content_id, group if joins else _Membership(None, None, 0)))
    await queries.assign_pages(
        conn,
        page_ids=[s.page_id for s, _, _ in assigned],
        organisation_ids=[s.organisation_id for s, _, _ in assigned],
        site_ids=[s.site_id for s, _, _ in assigned],
        version_ids=[s.version_id for s, _, _ in assigned],
        content_ids=[content_id for _, content_id, _ in assigned],
        group_ids=[group.id for _, _, group in assigned],
        similarities=[group.similarity for _, _, group in assigned],
    )


def _array(numbers: Sequence[int]) -> str:
    """Return a PostgreSQL array literal: an array of arrays would need equal lengths."""
    return "{" + ",".join(map(str, numbers)) + "}"


async def set_duplicate_of(
    conn: Connection, page_id: PageId, duplicate_of: PageId | None
) -> LikenessRow:
    """Record a user's decision that a page is a duplicate of another, or of none."""
    page = await _get_likeness(conn, page_id)
    if duplicate_of is None:
        await queries.decide_likeness(
            conn, page_id=page_id, group_id=None, similarity=None, by_hand=True
        )
        return await _get_likeness(conn, page_id)
    if duplicate_of == page_id:
        raise InvalidInput("A page cannot be a duplicate of itself.")
    other = await _get_likeness(conn, duplicate_of)
    if other.site_id != page.site_id:
        raise InvalidInput("A duplicate must be of the same site.")
    if other.group_id is None:
        # It had too little text to lead a group; now it does.
        await queries.decide_likeness(
            conn, page_id=duplicate_of, group_id=other.content_id, similarity=100, by_hand=False
        )
        other = await _get_likeness(conn, duplicate_of)
    await queries.decide_likeness(
        conn,
        page_id=page_id,
        group_id=other.group_id,
        similarity=page.similarity or 100,
        by_hand=True,
    )
    return await _get_likeness(conn, page_id)


async def clear_decision(conn: Connection, page_id: PageId) -> None:
    """Delete a user's decision, so that the computed group applies again."""
    await _get_likeness(conn, page_id)
    if not await queries.clear_decision(conn, page_id=page_id):
        raise Conflict("There is no decision about this page.")


async def _get_likeness(conn: Connection, page_id: PageId) -> LikenessRow:
    row = await queries.get_likeness(conn, page_id=page_id)
    if row is None:
        raise NotFound("There is no such page, or duplicate detection has not seen it yet.")
    return row
