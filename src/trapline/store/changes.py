"""Change events of pages: from visits, from complete crawls that missed a page, from changedetection.io."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId
from trapline.store.sql import changes as queries

ChangeStatus = Literal["new", "same", "changed", "removed"]
ChangeSource = Literal["visit", "sweep", "changedetection"]


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of the difference between two versions."""

    added_lines: int
    removed_lines: int
    added_words: int
    removed_words: int


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A page was seen to change."""

    organisation_id: OrganisationId
    site_id: SiteId
    page_id: PageId
    url_id: UrlId
    status: ChangeStatus
    detected_at: datetime
    source: ChangeSource = "visit"
    version_id: int | None = None
    previous_version_id: int | None = None
    job_id: JobId | None = None
    extent: Extent | None = None


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """A report of changedetection.io about a URL; `digest` identifies a repeated one."""

    watch_id: str
    watch_url: str
    detected_at: datetime
    digest: bytes
    diff_summary: str | None = None
    snapshot_url: str | None = None
    metadata: Any = None


async def record(conn: Connection, events: Sequence[ChangeEvent]) -> None:
    """Insert events in the given order."""
    if not events:
        return
    await queries.add_changes(
        conn,
        organisation_ids=[e.organisation_id for e in events],
        site_ids=[e.site_id for e in events],
        page_ids=[e.page_id for e in events],
        url_ids=[e.url_id for e in events],
        statuses=[e.status for e in events],
        sources=[e.source for e in events],
        detected_ats=[e.detected_at for e in events],
        version_ids=[e.version_id for e in events],
        previous_version_ids=[e.previous_version_id for e in events],
        job_ids=[e.job_id for e in events],
        added_lines=[None if e.extent is None else e.extent.added_lines for e in events],
        removed_lines=[None if e.extent is None else e.extent.removed_lines for e in events],
        added_words=[None if e.extent is None else e.extent.added_words for e in events],
        removed_words=[None if e.extent is None else e.extent.removed_words for e in events],
    )


async def add_report(
    conn: Connection, organisation_id: OrganisationId, report: ChangeReport, rescrape: JobId
) -> int | None:
    """Insert a report with the job that scrapes the page again; None if it exists already."""
    return await queries.add_report(
        conn,
        organisation_id=organisation_id,
        detected_at=report.detected_at,
        watch_id=report.watch_id,
        watch_url=report.watch_url,
        diff_summary=report.diff_summary,
        snapshot_url=report.snapshot_url,
        report=report.digest,
        rescrape_job_id=rescrape,
        metadata={} if report.metadata is None else report.metadata,
    )
