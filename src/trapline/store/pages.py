"""Pages and their versions: one page per site and URL, one version each time its text changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId, new_uuid
from trapline.store import changes
from trapline.store.changes import Event, Extent
from trapline.store.identity import content_hash
from trapline.store.sql import changes as change_queries
from trapline.store.sql import pages as queries
from trapline.store.sql.pages import SeePagesRow


@dataclass(frozen=True, slots=True)
class Content:
    """What an extractor made of the bytes of a page."""

    text: str
    markdown: str
    extractor_version: int
    content_type: str | None = None
    title: str | None = None
    language: str | None = None
    page_type: str | None = None
    metadata: Any = None
    links: Sequence[str] = ()
    warning: str | None = None
    sha256: bytes | None = None
    # The hash of the text, where it is known already.
    digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a content differs from an earlier version. `same`: in nothing that counts."""

    version_id: int
    same: bool
    extent: Extent | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A page as one visit found it. Without content it was not modified."""

    organisation_id: OrganisationId
    site_id: SiteId
    url_id: UrlId
    visit_id: int
    job_id: JobId | None
    seen_at: datetime
    status: int | None = None
    content: Content | None = None
    comparison: Comparison | None = None


class Change(StrEnum):
    """What a sighting meant for the page."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was written for a sighting."""

    page_id: PageId
    version_id: int | None
    number: int
    change: Change


async def record(conn: Connection, sightings: Sequence[Sighting]) -> list[Recorded]:
    """Write pages as seen, a version for each whose text is not what it was, and what changed."""
    if not sightings:
        return []
    before = await _see(conn, sightings)
    verdicts = [_judge(s, before[s.site_id, s.url_id]) for s in sightings]
    added = await _add_versions(
        conn,
        [
            (s, before[s.site_id, s.url_id], digest)
            for s, (change, digest) in zip(sightings, verdicts, strict=True)
            if change is not Change.SAME and digest is not None
        ],
    )
    recorded: list[Recorded] = []
    # Of two sightings of a page the last one counts, here too.
    events: dict[PageId, Event] = {}
    for sighting, (change, digest) in zip(sightings, verdicts, strict=True):
        page = before[sighting.site_id, sighting.url_id]
        version_id, number = added.get(page.page_id, (page.version_id, page.version_number))
        recorded.append(Recorded(page.page_id, version_id, number, change))
        if _is_news(sighting, page, change, digest):
            events[page.page_id] = _event(sighting, page, change, version_id)
    await changes.note(conn, list(events.values()))
    await _leave_for_counting(conn, sightings, recorded)
    return recorded


async def gone(
    conn: Connection,
    pages: Sequence[tuple[SiteId, UrlId, datetime]],
    *,
    source: changes.Source = "visit",
    job_id: JobId | None = None,
) -> int:
    """Note that these pages are no more; those that were known to be gone are not counted."""
    if not pages:
        return 0
    ordered = sorted(set(pages), key=lambda page: page[:2])
    rows = await queries.pages_gone(
        conn,
        site_ids=[site_id for site_id, _, _ in ordered],
        url_ids=[url_id for _, url_id, _ in ordered],
        ats=[at for _, _, at in ordered],
    )
    events = [
        Event(
            organisation_id=row.organisation_id,
            site_id=row.site_id,
            page_id=row.page_id,
            url_id=row.url_id,
            status="removed",
            detected_at=row.at,
            source=source,
            previous_version_id=row.version_id,
            job_id=job_id,
        )
        for row in rows
    ]
    await changes.note(conn, events)
    return len(rows)


def _is_news(sighting: Sighting, before: SeePagesRow, change: Change, digest: bytes | None) -> bool:
    """Tell of new and changed pages, of those that came back, and of changes that do not count."""
    if change is not Change.SAME or _returned(sighting, before):
        return True
    return digest is not None and digest != before.content_hash


def _returned(sighting: Sighting, before: SeePagesRow) -> bool:
    return before.returned_at == sighting.seen_at


def _event(
    sighting: Sighting, before: SeePagesRow, change: Change, version_id: int | None
) -> Event:
    comparison = sighting.comparison
    compared = comparison is not None and comparison.version_id == before.version_id
    return Event(
        organisation_id=sighting.organisation_id,
        site_id=sighting.site_id,
        page_id=before.page_id,
        url_id=sighting.url_id,
        # Who was told that a page is gone is told that it is there again.
        status="new" if _returned(sighting, before) else change.value,
        detected_at=sighting.seen_at,
        version_id=version_id,
        previous_version_id=before.version_id,
        job_id=sighting.job_id,
        extent=comparison.extent if comparison is not None and compared else None,
    )


async def _leave_for_counting(
    conn: Connection, sightings: Sequence[Sighting], recorded: Sequence[Recorded]
) -> None:
    seen = [
        (s, r, r.version_id)
        for s, r in zip(sightings, recorded, strict=True)
        if r.version_id is not None
    ]
    await change_queries.note_sightings(
        conn,
        organisation_ids=[s.organisation_id for s, _, _ in seen],
        site_ids=[s.site_id for s, _, _ in seen],
        page_ids=[r.page_id for _, r, _ in seen],
        version_ids=[version_id for _, _, version_id in seen],
        seen_ats=[s.seen_at for s, _, _ in seen],
    )


def _judge(sighting: Sighting, before: SeePagesRow) -> tuple[Change, bytes | None]:
    if sighting.content is None:
        return Change.SAME, None
    digest = sighting.content.digest or content_hash(sighting.content.text)
    if before.version_id is None:
        return Change.NEW, digest
    compared = sighting.comparison
    alike = compared is not None and compared.same and compared.version_id == before.version_id
    same = alike or digest == before.content_hash
    return (Change.SAME if same else Change.CHANGED), digest


async def _see(
    conn: Connection, sightings: Sequence[Sighting]
) -> dict[tuple[SiteId, UrlId], SeePagesRow]:
    # One statement cannot touch a row twice: of two sightings of a page the last one counts.
    once = {(s.site_id, s.url_id): s for s in sightings}
    rows = await queries.see_pages(
        conn,
        ids=[PageId(new_uuid()) for _ in once],
        organisation_ids=[s.organisation_id for s in once.values()],
        site_ids=[s.site_id for s in once.values()],
        url_ids=[s.url_id for s in once.values()],
        seen_ats=[s.seen_at for s in once.values()],
    )
    return {(row.site_id, row.url_id): row for row in rows}


async def _add_versions(
    conn: Connection, new: Sequence[tuple[Sighting, SeePagesRow, bytes]]
) -> dict[PageId, tuple[int, int]]:
    once = {page.page_id: (sighting, page, digest) for sighting, page, digest in new}
    if not once:
        return {}
    contents = [s.content for s, _, _ in once.values() if s.content is not None]
    rows = await queries.add_versions(
        conn,
        organisation_ids=[s.organisation_id for s, _, _ in once.values()],
        page_ids=list(once),
        numbers=[page.version_number + 1 for _, page, _ in once.values()],
        visit_ids=[s.visit_id for s, _, _ in once.values()],
        job_ids=[s.job_id for s, _, _ in once.values()],
        fetched_ats=[s.seen_at for s, _, _ in once.values()],
        content_hashes=[digest for _, _, digest in once.values()],
        extractor_versions=[c.extractor_version for c in contents],
        statuses=[s.status for s, _, _ in once.values()],
        content_types=[c.content_type for c in contents],
        titles=[c.title for c in contents],
        languages=[c.language for c in contents],
        page_types=[c.page_type for c in contents],
        texts=[c.text for c in contents],
        markdowns=[c.markdown for c in contents],
        metadatas=[_json(c.metadata or {}) for c in contents],
        links=[_json(c.links) for c in contents],
        warnings=[c.warning for c in contents],
        sha256s=[c.sha256 for c in contents],
    )
    return {row.page_id: (row.version_id, row.number) for row in rows}


def _json(value: object) -> str:
    """Return JSON that PostgreSQL takes: it has no place for a NUL character."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
