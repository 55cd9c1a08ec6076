"""A map for a caller who waits: like a scrape, it runs in its caller's process."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from trapline.db.pool import Database
from trapline.model import JobId
from trapline.pipeline.asking import Asker, until
from trapline.pipeline.kinds import MAP, MapTask
from trapline.pipeline.options import DEFAULT_TIMEOUT, MapOptions
from trapline.pipeline.scraping import Scraper
from trapline.pipeline.site_urls import MappedLink, Surveyor, events_of, told
from trapline.pipeline.submit import host_gate
from trapline.queue import jobs
from trapline.queue.direct import Direct, ended_by
from trapline.queue.finishing import Attempt, written
from trapline.queue.jobs import NewJob
from trapline.queue.tasks import NewTask


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a map came to. `warning` says what could not be read."""

    job_id: JobId
    links: list[MappedLink]
    warning: str | None = None


@dataclass(slots=True)
class Mapper:
    """Maps in this process."""

    database: Database
    surveyor: Surveyor
    direct: Direct

    @classmethod
    def beside(cls, scraper: Scraper) -> "Mapper":
        """Return a mapper that shares what a scraper has."""
        surveyor = Surveyor(scraper.database, scraper.steps)
        return cls(scraper.database, surveyor, scraper.direct)

    async def map(self, asker: Asker, options: MapOptions) -> Mapped:
        """Find the URLs of a site; TookTooLong when that is not done in its time."""
        latest = datetime.now(UTC) + timedelta(seconds=options.scrape.timeout or DEFAULT_TIMEOUT)
        job = NewJob(
            MAP,
            asker.organisation_id,
            id=asker.job_id or jobs.new_id(),
            member_id=asker.member_id,
            options=msgspec.to_builtins(options),
            metadata=asker.metadata,
            trace_id=asker.trace_id,
            zero_data_retention=options.scrape.zero_data_retention,
            ttl=jobs.times_kept(self.database.settings, single=True)[0],
        )
        crawl = self.surveyor.steps.crawls.make(job.id, asker.organisation_id, options)
        new = NewTask(MAP, MapTask(options.url), gate=host_gate(options, options.url))
        held = await self.direct.begin(job, new, latest=latest)
        try:
            async with until(latest):
                links, problems = await self.surveyor.links(crawl, options, held.task)
        except BaseException as error:
            await self.direct.finish(ended_by(held.task, error))
            raise
        attempt = Attempt(held.task, result=written(told(links, problems)))
        attempt.events.extend(events_of(held.task, links))
        await self.direct.finish(attempt)
        return Mapped(job.id, links, " ".join(problems) or None)
