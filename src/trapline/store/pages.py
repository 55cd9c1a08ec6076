"""Pages and their versions: one page per site and URL, one version each time its text changed."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId, new_uuid
from trapline.store import changes
from trapline.store.changes import Event, Extent
from trapline.store.identity import content_hash
from trapline.store.sql import pages as queries


class Content(Struct, frozen=True):
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


class Comparison(Struct, frozen=True):
    """How a content differs from an earlier version. `same`: in nothing that counts."""

    version_id: int
    same: bool
    extent: Extent | None = None


class Sighting(Struct, frozen=True):
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


# As store.record numbers them.
_CHANGES: Final = (Change.NEW, Change.SAME, Change.CHANGED)
_NO_CONTENT: Final = (None,) * 12


class Recorded(Struct, frozen=True, gc=False):
    """What was written for a sighting."""

    page_id: PageId
    version_id: int | None
    number: int
    change: Change


async def record(conn: Connection, sightings: Sequence[Sighting]) -> list[Recorded]:
    """Write pages as seen, a version for each whose text is not what it was, and what changed."""
    # Of two sightings of a page in one batch the last one counts.
    once = {(s.site_id, s.url_id): s for s in sightings}
    if not once:
        return []
    times = Counter((s.site_id, s.url_id) for s in sightings)
    # In one order, so that two batches cannot wait for each other.
    ordered = sorted(once)
    rows = await queries.record_pages(
        conn, sightings=[_row(once[place], times[place]) for place in ordered]
    )
    recorded = {
        place: Recorded(row.page_id, row.version_id, row.number, _CHANGES[row.change])
        for place, row in zip(ordered, rows, strict=True)
    }
    return [recorded[s.site_id, s.url_id] for s in sightings]


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


def _row(sighting: Sighting, times: int) -> tuple[Any, ...]:
    comparison = sighting.comparison
    return (
        new_uuid(),
        sighting.organisation_id,
        sighting.site_id,
        sighting.url_id,
        sighting.visit_id,
        sighting.job_id,
        sighting.seen_at,
        times,
        None if comparison is None else comparison.version_id,
        comparison is not None and comparison.same,
        *_extent(None if comparison is None else comparison.extent),
        sighting.status,
        *(_NO_CONTENT if sighting.content is None else _content(sighting.content)),
    )


def _extent(extent: Extent | None) -> tuple[int | None, ...]:
    if extent is None:
        return (None,) * 4
    return (extent.added_lines, extent.removed_lines, extent.added_words, extent.removed_words)


def _content(content: Content) -> tuple[Any, ...]:
    return (
        content.digest or content_hash(content.text),
        content.extractor_version,
        content.content_type,
        content.title,
        content.language,
        content.page_type,
        content.text,
        content.markdown,
        _json(content.metadata or {}),
        _json(content.links),
        content.warning,
        content.sha256,
    )


def _json(value: object) -> str:
    """Return JSON that PostgreSQL takes: it has no place for a NUL character."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
