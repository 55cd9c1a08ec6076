"""Submit, step one: one transaction writes a job and its first tasks."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from trapline.db.connection import Connection
from trapline.frontier.canonical_url import split_url
from trapline.frontier.politeness import DEFAULT_IN_FLIGHT
from trapline.model import JobId, MemberId, OrganisationId
from trapline.pipeline import owned_references
from trapline.pipeline.kinds import (
    BATCH,
    CRAWL,
    KICKOFF,
    MAP,
    PAGE,
    SCRAPE,
    Kickoff,
    MapTask,
    PageTask,
    crawl_kinds,
)
from trapline.pipeline.options import CrawlOptions, MapOptions, PageOptions, VisitOptions
from trapline.queue import daily_quota, jobs
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.tasks import NewTask


async def crawl(  # noqa: PLR0913 (the caller, the options, the job)
    conn: Connection,
    organisation_id: OrganisationId,
    options: CrawlOptions,
    *,
    member_id: MemberId | None = None,
    priority: int = 0,
    variables: Mapping[str, Any] = MappingProxyType({}),
    ttl: timedelta = timedelta(hours=24),
    job_id: JobId | None = None,
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> JobId:
    """Start a crawl. LimitReached if the organisation has used up its daily quota."""
    await daily_quota.require_pages(conn, organisation_id, now=datetime.now(UTC))
    await owned_references.require_options(conn, organisation_id, options)
    job = NewJob(
        CRAWL,
        organisation_id,
        id=job_id or jobs.new_id(),
        metadata=metadata,
        member_id=member_id,
        priority=priority,
        variables=variables,
        limit=options.limit,
        max_active=options.max_concurrency,
        options=msgspec.to_builtins(options),
        zero_data_retention=options.scrape.zero_data_retention,
        ttl=ttl,
    )
    first = NewTask(
        KICKOFF, Kickoff(url=options.url), gate=host_gate(options, options.url), counted=False
    )
    await jobs.submit(conn, crawl_kinds(), job, [first], now=datetime.now(UTC))
    return job.id


async def batch(  # noqa: PLR0913 (the caller, the options, the job)
    conn: Connection,
    organisation_id: OrganisationId,
    urls: Sequence[str],
    options: VisitOptions,
    *,
    member_id: MemberId | None = None,
    priority: int = 0,
    metadata: Mapping[str, Any] = MappingProxyType({}),
    ttl: timedelta = timedelta(hours=24),
    job_id: JobId | None = None,
) -> JobId:
    """Start a batch: these canonical URLs, without following links. LimitReached as for a crawl."""
    await daily_quota.require_pages(conn, organisation_id, now=datetime.now(UTC))
    await owned_references.require_options(conn, organisation_id, options)
    job = NewJob(
        BATCH,
        organisation_id,
        id=job_id or jobs.new_id(),
        member_id=member_id,
        priority=priority,
        metadata=metadata,
        max_active=options.max_concurrency,
        options=msgspec.to_builtins(options),
        zero_data_retention=options.scrape.zero_data_retention,
        ttl=ttl,
    )
    await jobs.submit(conn, crawl_kinds(), job, page_tasks(urls, options), now=datetime.now(UTC))
    return job.id


async def scrape(
    conn: Connection, organisation_id: OrganisationId, options: PageOptions, **how: Any
) -> JobId:
    """Queue a scrape of one page for a caller who does not wait. LimitReached as for a crawl."""
    (task,) = page_tasks([options.url], options)
    return await _submit_single(conn, SCRAPE, organisation_id, options, task, **how)


async def map_(
    conn: Connection, organisation_id: OrganisationId, options: MapOptions, **how: Any
) -> JobId:
    """Queue a map for a caller who does not wait. LimitReached as for a crawl."""
    task = NewTask(MAP, MapTask(options.url), gate=host_gate(options, options.url))
    return await _submit_single(conn, MAP, organisation_id, options, task, **how)


async def _submit_single(
    conn: Connection,
    kind: str,
    organisation_id: OrganisationId,
    options: VisitOptions,
    task: NewTask,
    **how: Any,
) -> JobId:
    now = datetime.now(UTC)
    await daily_quota.require_pages(conn, organisation_id, now=now)
    await owned_references.require_options(conn, organisation_id, options)
    job = NewJob(
        kind,
        organisation_id,
        options=msgspec.to_builtins(options),
        zero_data_retention=options.scrape.zero_data_retention,
        **how,
    )
    await jobs.submit(conn, crawl_kinds(), job, [task], now=now)
    return job.id


async def append(
    conn: Connection, job_id: JobId, urls: Sequence[str], options: VisitOptions
) -> None:
    """Add pages to a batch; an ended batch starts its next round."""
    await jobs.append(conn, crawl_kinds(), job_id, page_tasks(urls, options), now=datetime.now(UTC))


def page_tasks(urls: Sequence[str], options: VisitOptions) -> list[NewTask]:
    """Return the tasks that visit these pages."""
    return [NewTask(PAGE, PageTask(url=url), gate=host_gate(options, url)) for url in urls]


def host_gate(options: VisitOptions, url: str) -> Gate:
    """Return the gate of the URL's host, with the job's own delay and concurrency."""
    return _gate(split_url(url).host, options.delay, options.max_concurrency)


@lru_cache(maxsize=1024)
def _gate(host: str, delay: float | None, max_concurrency: int | None) -> Gate:
    return Gate(
        f"host:{host}",
        bound=DEFAULT_IN_FLIGHT,
        lane_gap=None if delay is None else timedelta(seconds=delay),
        lane_bound=1 if delay else max_concurrency,
    )
