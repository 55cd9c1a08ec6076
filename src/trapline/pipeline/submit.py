"""What a user asks for becomes a job and its first task, in one transaction."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec

from trapline.db.connection import Connection
from trapline.frontier.url import split_url
from trapline.model import JobId, MemberId, OrganisationId
from trapline.pipeline.kinds import KICKOFF, Kickoff, crawl_kinds
from trapline.pipeline.options import CrawlOptions
from trapline.queue import jobs
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.tasks import NewTask

CRAWL = "crawl"
DEFAULT_IN_FLIGHT = 2


async def crawl(  # noqa: PLR0913 (what is asked, by whom, how urgently)
    conn: Connection,
    organisation_id: OrganisationId,
    options: CrawlOptions,
    *,
    member_id: MemberId | None = None,
    priority: int = 0,
    variables: Mapping[str, Any] = MappingProxyType({}),
    metadata: Mapping[str, Any] = MappingProxyType({}),
    ttl: timedelta = timedelta(hours=24),
) -> JobId:
    """Start a crawl; its tasks run as soon as a worker is there."""
    job = NewJob(
        CRAWL,
        organisation_id,
        member_id=member_id,
        priority=priority,
        metadata=metadata,
        limit=options.limit,
        max_active=options.max_concurrency,
        options=msgspec.to_builtins(options),
        variables=variables,
        ttl=ttl,
    )
    first = NewTask(
        KICKOFF, Kickoff(url=options.url), gate=host_gate(options, options.url), counted=False
    )
    await jobs.submit(conn, crawl_kinds(), job, [first], now=datetime.now(UTC))
    return job.id


def host_gate(options: CrawlOptions, url: str) -> Gate:
    """Return the gate that tasks for this URL stand at, with what this crawl wishes there."""
    delay = None if options.delay is None else timedelta(seconds=options.delay)
    return Gate(
        f"host:{split_url(url).host}",
        bound=DEFAULT_IN_FLIGHT,
        lane_gap=delay,
        lane_bound=1 if options.delay else options.max_concurrency,
    )
