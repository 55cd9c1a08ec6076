"""Vanished pages: a page that one complete crawl saw and the next one did not is marked as removed.

A crawl is complete when no link was left beyond its limit and no failure may have hidden further
pages. It is compared with the last complete crawl that could reach the same pages.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.errors import OUTCOMES, Category
from trapline.frontier.canonical_url import split_url
from trapline.frontier.robots import parse_robots
from trapline.frontier.sql import robots
from trapline.logs import get_logger
from trapline.model import JobId, SiteId
from trapline.pipeline.kinds import PAGE
from trapline.pipeline.options import CrawlOptions
from trapline.pipeline.sql import changes as queries
from trapline.queue.sql.jobs import JobRow
from trapline.store import pages
from trapline.store.sql import changes

log = get_logger(__name__)

# Options that do not change which pages a crawl can reach.
_IRRELEVANT_OPTIONS: Final = ("limit", "delay", "max_concurrency", "force", "index", "scrape")


async def remove_vanished(conn: Connection, job: JobRow, user_agent: str) -> int:
    """Mark the pages that a complete crawl did not see again; return their number."""
    if job.started_at is None or job.overflow or await _is_incomplete(conn, job.id):
        return 0
    options = msgspec.convert(job.options, CrawlOptions)
    sweep = _Sweep(conn, job, options, options.robots_user_agent or user_agent)
    removed = 0
    for site_id in await queries.sites_of_job(conn, job_id=job.id):
        removed += await sweep.of_site(site_id, job.started_at)
    if removed:
        log.info("pages vanished", job_id=str(job.id), pages=removed)
    return removed


@dataclass(slots=True)
class _Sweep:
    conn: Connection
    job: JobRow
    options: CrawlOptions
    robots_agent: str
    _robots: dict[str, bytes] = field(default_factory=dict)

    async def of_site(self, site_id: SiteId, started_at: datetime) -> int:
        plan = _coverage_key(self.options)
        earlier = await changes.last_sweep(
            self.conn, organisation_id=self.job.organisation_id, site_id=site_id, plan=plan
        )
        removed = 0
        if earlier is not None and earlier.started_at < started_at:
            removed = await self._remove(site_id, earlier.job_id, started_at)
        await changes.record_sweep(
            self.conn,
            site_id=site_id,
            plan=plan,
            organisation_id=self.job.organisation_id,
            job_id=self.job.id,
            started_at=started_at,
        )
        return removed

    async def _remove(self, site_id: SiteId, earlier: JobId, started_at: datetime) -> int:
        unseen = await queries.unseen_pages(
            self.conn,
            organisation_id=self.job.organisation_id,
            job_id=self.job.id,
            earlier_job_id=earlier,
            site_id=site_id,
            started_at=started_at,
        )
        now = datetime.now(UTC)
        gone = [
            (page.site_id, page.url_id, now)
            for page in unseen
            if not await self._is_forbidden(page.url)
        ]
        return await pages.mark_gone(self.conn, gone, source="sweep", job_id=self.job.id)

    async def _is_forbidden(self, url: str) -> bool:
        """Whether robots.txt now forbids a page: such a page is not gone."""
        if self.options.ignore_robots:
            return False
        parts = split_url(url)
        origin = f"{parts.scheme}://{parts.host}"
        if origin not in self._robots:
            row = await robots.fresh_robots(self.conn, origin=origin, now=self.job.created_at)
            self._robots[origin] = b"" if row is None else row.body
        return not parse_robots(self._robots[origin]).access(self.robots_agent).allows(url)


async def _is_incomplete(conn: Connection, job_id: JobId) -> bool:
    """Whether a failure may have hidden further pages."""
    failed = await queries.count_blocking_failures(
        conn,
        job_id=job_id,
        page_kind=PAGE,
        harmless=[code for code, end in OUTCOMES.items() if end.category is Category.GONE],
        passing=[code for code, end in OUTCOMES.items() if end.category is Category.TRANSIENT],
    )
    return failed > 0


def _coverage_key(options: CrawlOptions) -> bytes:
    """Return a hash that crawls share when they can reach the same pages."""
    relevant = msgspec.to_builtins(options)
    for name in _IRRELEVANT_OPTIONS:
        relevant.pop(name, None)
    return hashlib.sha256(msgspec.json.encode(relevant, order="sorted")).digest()
