"""Pages and their versions: one page per site and URL, one version each time its text changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId, new_uuid
from trapline.store.identity import content_hash
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
    """Write pages as seen, and a version for each whose text is not what it was."""
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
    recorded = []
    for sighting, (change, _) in zip(sightings, verdicts, strict=True):
        page = before[sighting.site_id, sighting.url_id]
        version_id, number = added.get(page.page_id, (page.version_id, page.version_number))
        recorded.append(Recorded(page.page_id, version_id, number, change))
    return recorded


async def gone(conn: Connection, pages: Sequence[tuple[SiteId, UrlId, datetime]]) -> None:
    """Note that the server has these pages no more."""
    if pages:
        ordered = sorted(pages, key=lambda page: page[:2])
        await queries.pages_gone(
            conn,
            site_ids=[site_id for site_id, _, _ in ordered],
            url_ids=[url_id for _, url_id, _ in ordered],
            ats=[at for _, _, at in ordered],
        )


def _judge(sighting: Sighting, before: SeePagesRow) -> tuple[Change, bytes | None]:
    if sighting.content is None:
        return Change.SAME, None
    digest = content_hash(sighting.content.text)
    if before.version_id is None:
        return Change.NEW, digest
    return (Change.SAME if digest == before.content_hash else Change.CHANGED), digest


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
