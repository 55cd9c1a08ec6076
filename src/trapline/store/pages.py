"""Pages and their versions: one page for each site and URL, one version for each change of its text."""

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
from trapline.store.changes import ChangeEvent, Extent
from trapline.store.content_hash import content_hash
from trapline.store.sql import pages as queries


class PageContent(Struct, frozen=True):
    """The extracted content of a page."""

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
    # The hash of the text, if it is already computed.
    digest: bytes | None = None


class Comparison(Struct, frozen=True):
    """The difference between a content and an earlier version. `same`: nothing that counts."""

    version_id: int
    same: bool
    extent: Extent | None = None


class Sighting(Struct, frozen=True):
    """A page as one visit saw it. Without content it was not modified."""

    organisation_id: OrganisationId
    site_id: SiteId
    url_id: UrlId
    visit_id: int
    job_id: JobId | None
    seen_at: datetime
    status: int | None = None
    content: PageContent | None = None
    comparison: Comparison | None = None
    variant: bytes = b""
    """How the page was asked for."""


class PageChange(StrEnum):
    """The effect of a sighting on its page."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"


# As store.record_pages numbers them.
_CHANGES: Final = (PageChange.NEW, PageChange.SAME, PageChange.CHANGED)
_NO_CONTENT: Final = (None,) * 12

_Key = tuple[SiteId, UrlId, bytes]


class RecordedPage(Struct, frozen=True, gc=False):
    """The row that a sighting has written."""

    page_id: PageId
    version_id: int | None
    number: int
    change: PageChange


async def record(conn: Connection, sightings: Sequence[Sighting]) -> list[RecordedPage]:
    """Record pages as seen, a version for each whose text changed, and its change event."""
    # Of two sightings of a page in one batch the last one counts.
    once = {_key(s): s for s in sightings}
    times = Counter(_key(s) for s in sightings)
    recorded: dict[_Key, RecordedPage] = {}
    left = list(once)
    while left:
        # A page that was asked for in two ways is written twice, one after the other. All are in one
        # order, so that two batches cannot wait for each other.
        keys = sorted({key[:2]: key for key in reversed(left)}.values())
        rows = await queries.record_pages(
            conn, sightings=[_row(once[key], times[key]) for key in keys]
        )
        for key, row in zip(keys, rows, strict=True):
            change = _CHANGES[row.change]
            recorded[key] = RecordedPage(row.page_id, row.version_id, row.number, change)
        left = [key for key in left if key not in recorded]
    return [recorded[_key(s)] for s in sightings]


def _key(sighting: Sighting) -> _Key:
    return sighting.site_id, sighting.url_id, sighting.variant


async def mark_gone(
    conn: Connection,
    pages: Sequence[tuple[SiteId, UrlId, datetime]],
    *,
    source: changes.ChangeSource = "visit",
    job_id: JobId | None = None,
) -> int:
    """Mark pages as gone; return how many were not gone before."""
    if not pages:
        return 0
    ordered = sorted(set(pages), key=lambda page: page[:2])
    rows = await queries.mark_pages_gone(
        conn,
        site_ids=[site_id for site_id, _, _ in ordered],
        url_ids=[url_id for _, url_id, _ in ordered],
        ats=[at for _, _, at in ordered],
    )
    events = [
        ChangeEvent(
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
    await changes.record(conn, events)
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
        sighting.variant,
    )


def _extent(extent: Extent | None) -> tuple[int | None, ...]:
    if extent is None:
        return (None,) * 4
    return (extent.added_lines, extent.removed_lines, extent.added_words, extent.removed_words)


def _content(content: PageContent) -> tuple[Any, ...]:
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
    """Return JSON without NUL characters, which PostgreSQL rejects."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
