"""Duplicates: contents counted, and pages whose contents are alike put into groups.

Visits only leave sightings behind. Here they are folded: each content of a site is counted once,
a new one is compared with those that share a band of its MinHash, and its pages take its group.
Nothing of this happens in the transaction that ends a task.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trapline.db.connection import Connection
from trapline.errors import Conflict, InvalidInput, NotFound
from trapline.model import PageId, SiteId
from trapline.store import likeness
from trapline.store.likeness import Numbers
from trapline.store.sql import duplicates as queries
from trapline.store.sql.duplicates import CountContentsRow, LikenessRow, TakeSightingsRow

THRESHOLD: Final = 95
MOST_FOLDED: Final = 500
"""So many sightings are folded in one transaction."""
_LOCK: Final = 0x73_64_75_70  # "sdup"
_MOST_CANDIDATES: Final = 50

Key = tuple[SiteId, bytes]


@dataclass(slots=True)
class _Candidate:
    """A content without a group yet, on its way to one."""

    row: CountContentsRow
    threshold: int
    words: int = 0
    features: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    signature: bytes = b""
    bands: list[int] = field(default_factory=list)
    group_id: int | None = None
    similarity: int | None = None

    @property
    def leads(self) -> bool:
        """Whether it stands for a group of its own."""
        return self.group_id == self.row.content_id

    def join(self, group_id: int, similarity: int, title: str | None) -> None:
        """Take the group of a content with that title, if it is the most alike so far."""
        alike = likeness.may_be_alike(self.words, self.row.title, title)
        if alike and similarity >= self.threshold and similarity > (self.similarity or 0):
            self.group_id, self.similarity = group_id, similarity


@dataclass(frozen=True, slots=True)
class _Group:
    """Where a content belongs."""

    id: int | None
    similarity: int | None
    words: int


async def fold(conn: Connection) -> int:
    """Count and compare some sightings; fewer than MOST_FOLDED when there are no more."""
    await queries.lock_folding(conn, key=_LOCK)
    sightings = await queries.take_sightings(conn, most=MOST_FOLDED)
    if not sightings:
        return 0
    contents = {(c.site_id, c.content_hash): c for c in await _count(conn, sightings)}
    groups = {key: _Group(c.group_id, c.similarity, c.words) for key, c in contents.items()}
    groups |= await _group(conn, [c for c in contents.values() if _is_new(c)])
    await _place(conn, sightings, contents, groups)
    return len(sightings)


def _is_new(content: CountContentsRow) -> bool:
    return content.group_id is None and content.words == 0


async def _count(conn: Connection, sightings: Sequence[TakeSightingsRow]) -> list[CountContentsRow]:
    seen: dict[Key, list[TakeSightingsRow]] = {}
    for sighting in sightings:
        seen.setdefault((sighting.site_id, sighting.content_hash), []).append(sighting)
    # In one order, so that two of us cannot wait for each other.
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


async def _group(conn: Connection, new: Sequence[CountContentsRow]) -> dict[Key, _Group]:
    """Find the group of each new content, in the order in which they were first seen."""
    if not new:
        return {}
    candidates = await _read(conn, sorted(new, key=lambda row: row.first_version_id))
    telling = [c for c in candidates if c.words >= likeness.FEWEST_WORDS]
    await _compare_with_known(conn, telling)
    _compare_among_themselves(telling)
    await _write(conn, candidates)
    return {
        (c.row.site_id, c.row.content_hash): _Group(c.group_id, c.similarity, c.words)
        for c in candidates
    }


async def _read(conn: Connection, rows: Sequence[CountContentsRow]) -> list[_Candidate]:
    texts = await _texts(conn, (row.first_version_id for row in rows))
    thresholds = {
        row.site_id: row.threshold
        for row in await queries.thresholds_of(conn, site_ids=list({row.site_id for row in rows}))
    }
    candidates = []
    for row in rows:
        words = likeness.words_of(texts.get(row.first_version_id, ""))
        found = _Candidate(row, thresholds.get(row.site_id, THRESHOLD), words=len(words))
        if found.words >= likeness.FEWEST_WORDS:
            found.features = likeness.features(words)
            found.signature = likeness.signature(found.features)
            found.bands = likeness.bands(row.site_id, found.signature)
        candidates.append(found)
    return candidates


async def _texts(conn: Connection, version_ids: Iterable[int]) -> dict[int, str]:
    rows = await queries.texts_of(conn, version_ids=list(set(version_ids)))
    return {row.version_id: row.text for row in rows}


async def _compare_with_known(conn: Connection, candidates: Sequence[_Candidate]) -> None:
    near = await queries.similar_contents(
        conn,
        numbers=list(range(len(candidates))),
        bands=[_array(c.bands) for c in candidates],
        algorithm=likeness.ALGORITHM,
        most=_MOST_CANDIDATES,
    )
    texts = await _texts(conn, (row.first_version_id for row in near))
    for row in near:
        candidate, text = candidates[row.number], texts.get(row.first_version_id)
        if text is None:
            # Its version is gone; its MinHash still says how alike they were.
            alike = likeness.estimate(candidate.signature, row.signature)
        else:
            other = likeness.features(likeness.words_of(text))
            alike = likeness.similarity(candidate.features, other)
        candidate.join(row.content_id, alike, row.title)


def _compare_among_themselves(candidates: Sequence[_Candidate]) -> None:
    """Let those that found no group lead one, which later ones of this batch may join."""
    leaders: dict[int, list[_Candidate]] = {}
    for candidate in candidates:
        near = {id(c): c for band in candidate.bands for c in leaders.get(band, ())}
        for leader in list(near.values())[:_MOST_CANDIDATES]:
            alike = likeness.similarity(candidate.features, leader.features)
            candidate.join(leader.row.content_id, alike, leader.row.title)
        if candidate.group_id is None:
            candidate.group_id, candidate.similarity = candidate.row.content_id, 100
            for band in candidate.bands:
                leaders.setdefault(band, []).append(candidate)


async def _write(conn: Connection, candidates: Sequence[_Candidate]) -> None:
    await queries.group_contents(
        conn,
        content_ids=[c.row.content_id for c in candidates],
        group_ids=[c.group_id for c in candidates],
        similarities=[c.similarity for c in candidates],
        # Not 0: that says that nobody looked.
        words=[max(1, c.words) for c in candidates],
    )
    leaders = [c for c in candidates if c.leads]
    await queries.add_fingerprints(
        conn,
        content_ids=[c.row.content_id for c in leaders],
        organisation_ids=[c.row.organisation_id for c in leaders],
        signatures=[c.signature for c in leaders],
        bands=[_array(c.bands) for c in leaders],
        algorithm=likeness.ALGORITHM,
    )


async def _place(
    conn: Connection,
    sightings: Sequence[TakeSightingsRow],
    contents: dict[Key, CountContentsRow],
    groups: dict[Key, _Group],
) -> None:
    latest = {s.page_id: s for s in sightings}
    placed = []
    for seen in latest.values():
        content, group = (
            contents[seen.site_id, seen.content_hash],
            groups[seen.site_id, seen.content_hash],
        )
        joins = likeness.may_be_alike(group.words, seen.title, content.title)
        placed.append((seen, content.content_id, group if joins else _Group(None, None, 0)))
    await queries.place_pages(
        conn,
        page_ids=[s.page_id for s, _, _ in placed],
        organisation_ids=[s.organisation_id for s, _, _ in placed],
        site_ids=[s.site_id for s, _, _ in placed],
        version_ids=[s.version_id for s, _, _ in placed],
        content_ids=[content_id for _, content_id, _ in placed],
        group_ids=[group.id for _, _, group in placed],
        similarities=[group.similarity for _, _, group in placed],
    )


def _array(numbers: Sequence[int]) -> str:
    """Return an array as PostgreSQL reads it: arrays of arrays would need one length."""
    return "{" + ",".join(map(str, numbers)) + "}"


async def decide(conn: Connection, page_id: PageId, duplicate_of: PageId | None) -> LikenessRow:
    """Say by hand that a page is a duplicate of another, or of none."""
    page = await _placed(conn, page_id)
    if duplicate_of is None:
        await queries.decide_likeness(
            conn, page_id=page_id, group_id=None, similarity=None, by_hand=True
        )
        return await _placed(conn, page_id)
    if duplicate_of == page_id:
        raise InvalidInput("A page cannot be a duplicate of itself.")
    other = await _placed(conn, duplicate_of)
    if other.site_id != page.site_id:
        raise InvalidInput("Duplicates are of one site.")
    if other.group_id is None:
        # It had too little text for a group of its own; now it leads one.
        await queries.decide_likeness(
            conn, page_id=duplicate_of, group_id=other.content_id, similarity=100, by_hand=False
        )
        other = await _placed(conn, duplicate_of)
    await queries.decide_likeness(
        conn,
        page_id=page_id,
        group_id=other.group_id,
        similarity=page.similarity or 100,
        by_hand=True,
    )
    return await _placed(conn, page_id)


async def undecide(conn: Connection, page_id: PageId) -> None:
    """Forget what was decided by hand: what was found holds again."""
    await _placed(conn, page_id)
    if not await queries.forget_decision(conn, page_id=page_id):
        raise Conflict("Nobody decided anything about this page.")


async def _placed(conn: Connection, page_id: PageId) -> LikenessRow:
    row = await queries.get_likeness(conn, page_id=page_id)
    if row is None:
        raise NotFound("There is no such page, or nobody has looked at it yet.")
    return row
