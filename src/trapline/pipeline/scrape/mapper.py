"""A map for a caller who waits; like a scrape, it runs in the caller's process."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from trapline.db.pool import Database
from trapline.model import JobId
from trapline.pipeline.caller import Caller, deadline
from trapline.pipeline.crawl.url_discovery import MappedLink, UrlDiscovery, events_of, summary
from trapline.pipeline.kinds import MAP, MapTask
from trapline.pipeline.options import DEFAULT_TIMEOUT, MapOptions
from trapline.pipeline.scrape.scraper import Scraper
from trapline.pipeline.submit import host_gate
from trapline.queue import jobs
from trapline.queue.finish import Attempt, TaskResult
from trapline.queue.inline_tasks import InlineTasks, failed_attempt
from trapline.queue.jobs import NewJob
from trapline.queue.tasks import NewTask


@dataclass(frozen=True, slots=True)
class MapResult:
    """The result of a map. `warning` names what could not be read."""

    job_id: JobId
    links: list[MappedLink]
    warning: str | None = None


@dataclass(slots=True)
class Mapper:
    """Runs maps in this process."""

    database: Database
    discovery: UrlDiscovery
    inline_tasks: InlineTasks

    @classmethod
    def sharing(cls, scraper: Scraper) -> "Mapper":
        """Return a mapper that shares the handlers of a scraper."""
        discovery = UrlDiscovery(scraper.database, scraper.handlers)
        return cls(scraper.database, discovery, scraper.inline_tasks)

    async def map(self, caller: Caller, options: MapOptions) -> MapResult:
        """Find the URLs of a site; DeadlineExceeded when it takes longer than its timeout."""
        latest = datetime.now(UTC) + timedelta(seconds=options.scrape.timeout or DEFAULT_TIMEOUT)
        job = NewJob(
            MAP,
            caller.organisation_id,
            id=caller.job_id or jobs.new_id(),
            member_id=caller.member_id,
            options=msgspec.to_builtins(options),
            metadata=caller.metadata,
            trace_id=caller.trace_id,
            zero_data_retention=options.scrape.zero_data_retention,
            ttl=jobs.retention_times(self.database.settings.retention, single=True)[0],
        )
        context = self.discovery.handlers.contexts.make(job.id, caller.organisation_id, options)
        new = NewTask(MAP, MapTask(options.url), gate=host_gate(options, options.url))
        held = await self.inline_tasks.begin(job, new, latest=latest)
        try:
            async with deadline(latest):
                links, problems = await self.discovery.links(context, options, held.task)
        except BaseException as error:
            await self.inline_tasks.finish(failed_attempt(held.task, error))
            raise
        result = TaskResult(summary(links, problems), events=list(events_of(held.task, links)))
        await self.inline_tasks.finish(Attempt(held.task, result=result))
        return MapResult(job.id, links, " ".join(problems) or None)
