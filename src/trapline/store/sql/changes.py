"""Typed functions of changes.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId


class FindReportRow(Struct, frozen=True, gc=False):
    id: int
    rescrape_job_id: JobId | None
    rescrape_status: str | None


class SweepRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    plan: bytes
    organisation_id: OrganisationId
    job_id: JobId
    started_at: datetime


_ADD_CHANGES: Final = """
-- name: AddChanges
INSERT INTO store.change (
    organisation_id, site_id, page_id, url_id, status, source, detected_at, version_id,
    previous_version_id, job_id, added_lines, removed_lines, added_words, removed_words
)
SELECT *
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::uuid[],
    $4::bigint[],
    $5::text[],
    $6::text[],
    $7::timestamptz[],
    $8::bigint[],
    $9::bigint[],
    $10::uuid[],
    $11::integer[],
    $12::integer[],
    $13::integer[],
    $14::integer[]
)
"""


async def add_changes(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    site_ids: Sequence[SiteId],
    page_ids: Sequence[PageId],
    url_ids: Sequence[UrlId],
    statuses: Sequence[str],
    sources: Sequence[str],
    detected_ats: Sequence[datetime],
    version_ids: Sequence[int | None] | None,
    previous_version_ids: Sequence[int | None] | None,
    job_ids: Sequence[JobId | None] | None,
    added_lines: Sequence[int | None] | None,
    removed_lines: Sequence[int | None] | None,
    added_words: Sequence[int | None] | None,
    removed_words: Sequence[int | None] | None,
) -> None:
    """Insert change events."""
    await conn.execute(
        _ADD_CHANGES,
        organisation_ids,
        site_ids,
        page_ids,
        url_ids,
        statuses,
        sources,
        detected_ats,
        version_ids,
        previous_version_ids,
        job_ids,
        added_lines,
        removed_lines,
        added_words,
        removed_words,
    )


_ADD_REPORT: Final = """
-- name: AddReport
INSERT INTO store.change (
    organisation_id, status, source, detected_at, watch_id, watch_url, diff_summary, snapshot_url,
    report, rescrape_job_id, rescrape_status, metadata
) VALUES (
    $1, 'changed', 'changedetection', $2,
    $3::text, $4::text, $5,
    $6, $7::bytea, $8::uuid, 'queued',
    $9
)
ON CONFLICT DO NOTHING
RETURNING id
"""


async def add_report(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    detected_at: datetime,
    watch_id: str,
    watch_url: str,
    diff_summary: str | None,
    snapshot_url: str | None,
    report: bytes,
    rescrape_job_id: JobId,
    metadata: Any,
) -> int | None:
    """Insert a report of changedetection.io; no row if it exists already."""
    value: int | None = await conn.fetchval(
        _ADD_REPORT,
        organisation_id,
        detected_at,
        watch_id,
        watch_url,
        diff_summary,
        snapshot_url,
        report,
        rescrape_job_id,
        metadata,
    )
    return value


_FIND_REPORT: Final = """
-- name: FindReport
SELECT id, rescrape_job_id, rescrape_status FROM store.change
WHERE organisation_id = $1 AND report = $2::bytea
"""


async def find_report(
    conn: Connection, *, organisation_id: OrganisationId, report: bytes
) -> FindReportRow | None:
    """The change event of an earlier, identical report."""
    row = await conn.fetchrow(_FIND_REPORT, organisation_id, report)
    return None if row is None else FindReportRow(*row)


_SETTLE_REPORTS: Final = """
-- name: SettleReports
UPDATE store.change c
SET rescrape_status = ended.status,
    indexed_at = ended.indexed_at,
    site_id = coalesce(c.site_id, ended.site_id),
    page_id = coalesce(c.page_id, ended.page_id),
    url_id = coalesce(c.url_id, ended.url_id),
    version_id = coalesce(c.version_id, ended.version_id)
FROM unnest(
    $1::uuid[], $2::text[], $3::timestamptz[],
    $4::uuid[], $5::uuid[], $6::bigint[],
    $7::bigint[]
) AS ended (job_id, status, indexed_at, site_id, page_id, url_id, version_id)
WHERE c.rescrape_job_id = ended.job_id AND c.rescrape_status = 'queued'
"""


async def settle_reports(
    conn: Connection,
    *,
    job_ids: Sequence[JobId],
    statuses: Sequence[str],
    indexed_ats: Sequence[datetime | None] | None,
    site_ids: Sequence[SiteId | None] | None,
    page_ids: Sequence[PageId | None] | None,
    url_ids: Sequence[UrlId | None] | None,
    version_ids: Sequence[int | None] | None,
) -> int:
    """Record the result of the rescrape of reported pages, and which page it was."""
    return int(
        (
            await conn.execute(
                _SETTLE_REPORTS,
                job_ids,
                statuses,
                indexed_ats,
                site_ids,
                page_ids,
                url_ids,
                version_ids,
            )
        ).rpartition(" ")[2]
    )


_AWAITED_REPORTS: Final = """
-- name: AwaitedReports
SELECT DISTINCT rescrape_job_id AS "job_id!" FROM store.change
WHERE rescrape_job_id = ANY ($1::uuid[]) AND rescrape_status = 'queued'
"""


async def awaited_reports(conn: Connection, *, job_ids: Sequence[JobId]) -> list[JobId]:
    """Which of these jobs are rescrapes of reported pages."""
    return [row[0] for row in await conn.fetch(_AWAITED_REPORTS, job_ids)]


_LAST_SWEEP: Final = """
-- name: LastSweep
SELECT * FROM store.sweep
WHERE organisation_id = $1 AND site_id = $2
    AND plan = $3
"""


async def last_sweep(
    conn: Connection, *, organisation_id: OrganisationId, site_id: SiteId, plan: bytes
) -> SweepRow | None:
    """The last complete crawl of an organisation's site with this plan."""
    row = await conn.fetchrow(_LAST_SWEEP, organisation_id, site_id, plan)
    return None if row is None else SweepRow(*row)


_RECORD_SWEEP: Final = """
-- name: RecordSweep
INSERT INTO store.sweep AS s (site_id, plan, organisation_id, job_id, started_at)
VALUES (
    $1, $2, $3, $4,
    $5
)
ON CONFLICT (site_id, plan) DO UPDATE SET job_id = excluded.job_id, started_at = excluded.started_at
WHERE s.started_at < excluded.started_at
"""


async def record_sweep(
    conn: Connection,
    *,
    site_id: SiteId,
    plan: bytes,
    organisation_id: OrganisationId,
    job_id: JobId,
    started_at: datetime,
) -> None:
    """Record a complete crawl of a site."""
    await conn.execute(_RECORD_SWEEP, site_id, plan, organisation_id, job_id, started_at)
