"""Monitor requests, and their translation to a schedule and a job template."""

import re
from typing import Annotated, Any, Final, Literal, Self

import msgspec
from pydantic import Field, model_validator

from trapline.api.firecrawl.errors import Refusal
from trapline.api.firecrawl.requests.base_models import Address, Origin, Wire, wrong
from trapline.api.firecrawl.requests.crawl_request import CrawlBody
from trapline.api.firecrawl.requests.scrape_options import ScrapeOptionsBody, for_job
from trapline.pipeline.kinds import BATCH, CRAWL
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.schedule.schedules import Plan

LABEL: Final = "monitor"
DEFAULT_RETENTION: Final = 30
_NAMED: Final = {
    "every minute": "* * * * *",
    "hourly": "0 * * * *",
    "every hour": "0 * * * *",
    "daily": "0 0 * * *",
    "every day": "0 0 * * *",
    "weekly": "0 0 * * 0",
    "every week": "0 0 * * 0",
    "monthly": "0 0 1 * *",
}
_EVERY: Final = re.compile(r"every (\d{1,2}) (minute|hour)s?")
_AT: Final = re.compile(r"(?:daily|every day) at (\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
_HOURS: Final = 24
_NOON: Final = 12
_MINUTES: Final = 60


def cron_of(text: str) -> str:
    """Parse a schedule in words; the error for others names examples."""
    words = " ".join(text.lower().split())
    if words in _NAMED:
        return _NAMED[words]
    if match := _EVERY.fullmatch(words):
        count, most = int(match[1]), _MINUTES if match[2] == "minute" else _HOURS
        # Only what divides the hour or the day comes at even distances.
        if count and most % count == 0 and count < most:
            return f"*/{count} * * * *" if match[2] == "minute" else f"0 */{count} * * *"
    if match := _AT.fullmatch(words):
        hour, minute = int(match[1]), int(match[2] or 0)
        if match[3]:
            hour = hour % _NOON + (_NOON if match[3] == "pm" else 0)
        if hour < _HOURS and minute < _MINUTES:
            return f"{minute} {hour} * * *"
    raise wrong(
        f"The schedule {text!r} is not understood. Give a cron rule, or words such as"
        " 'every 30 minutes', 'hourly' or 'daily at 9:00'."
    )


class ScheduleBody(Wire):
    """When a monitor checks: a cron rule or a few words, and a time zone."""

    cron: Annotated[str | None, Field(max_length=200)] = None
    text: Annotated[str | None, Field(max_length=200)] = None
    timezone: Annotated[str, Field(max_length=100)] = "UTC"

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.cron is None) == (self.text is None):
            raise wrong("A schedule has either `cron` or `text`.")
        if self.text is not None:
            cron_of(self.text)
        return self

    def rule(self) -> Rule:
        return Rule("recurring", self.cron or cron_of(self.text or ""), timezone=self.timezone)


class TargetBody(Wire):
    """What is watched: pages, or a site."""

    id: Annotated[str | None, Field(max_length=100)] = None
    type: Literal["scrape", "crawl", "search"]
    urls: Annotated[list[Address], Field(min_length=1, max_length=10_000)] | None = None
    url: Address | None = None
    scrape_options: ScrapeOptionsBody = ScrapeOptionsBody()
    crawl_options: dict[str, Any] = {}
    queries: list[str] | None = None
    search_window: str | None = None
    include_domains: list[str] | None = None
    exclude_domains: list[str] | None = None
    max_results: int | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.type == "search":
            raise wrong("Targets of type search are not supported; scrape and crawl are.")
        if self.type == "scrape" and not self.addresses():
            raise wrong("A target of type scrape needs `urls`.")
        if self.type == "crawl" and self.url is None:
            raise wrong("A target of type crawl needs `url`.")
        if self.type == "crawl":
            self._crawl_body()
        if self.scrape_options.redact_pii:
            raise wrong("redactPII is not for monitors: their differences would show the data.")
        return self

    def addresses(self) -> list[str]:
        return self.urls or ([] if self.url is None else [self.url])

    def visit(self) -> dict[str, Any]:
        """Return how a page is visited: never from the cache, which would hide changes."""
        scrape = msgspec.to_builtins(for_job(self.scrape_options.scrape_options()))
        return {**scrape, "store": True, "max_age": 0.0}

    def crawl(self) -> dict[str, Any]:
        options = msgspec.to_builtins(self._crawl_body().crawl_options())
        return {**options, "scrape": self.visit()}

    def _crawl_body(self) -> CrawlBody:
        return CrawlBody.model_validate({**self.crawl_options, "url": self.url})


Targets = Annotated[list[TargetBody], Field(min_length=1, max_length=50)]
Retention = Annotated[int, Field(ge=1, le=365)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*\S[^\x00]*$")]


class MonitorExtras(Origin):
    """Options of a monitor that this server does not support."""

    webhook: Any = None
    notification: Any = None
    goal: Annotated[str | None, Field(max_length=10_000)] = None
    judge_enabled: bool | None = None

    def refuse(self) -> None:
        """Refuse the unsupported options of a monitor."""
        for name, value in (("webhook", self.webhook), ("notification", self.notification)):
            if value:
                raise Refusal(400, f"{name} of monitors is not supported.", "BAD_REQUEST")
        if self.goal or self.judge_enabled:
            raise Refusal(400, "goal and judgeEnabled are not supported.", "BAD_REQUEST")


class MonitorBody(MonitorExtras):
    """POST /v2/monitor."""

    name: Name
    schedule: ScheduleBody
    targets: Targets
    retention_days: Retention = DEFAULT_RETENTION

    def plan(self) -> Plan:
        self.refuse()
        template = template_of(self.targets, self.retention_days)
        return Plan(self.name, self.schedule.rule(), template)


class MonitorChange(MonitorExtras):
    """PATCH /v2/monitor/{id}."""

    name: Name | None = None
    status: Literal["active", "paused"] | None = None
    schedule: ScheduleBody | None = None
    targets: Targets | None = None
    retention_days: Retention | None = None


def template_of(targets: list[TargetBody], retention_days: int) -> dict[str, Any]:
    """Make the template of a monitor's jobs: one crawl, or one batch of all pages."""
    common = {
        "keep_days": retention_days,
        "labels": {
            LABEL: {"targets": [_target_fields(n, target) for n, target in enumerate(targets, 1)]}
        },
    }
    first = targets[0]
    if first.type == "crawl" and len(targets) == 1:
        return {"kind": CRAWL, "url": first.url, "options": first.crawl(), **common}
    if any(target.type == "crawl" for target in targets):
        raise Refusal(400, "A monitor has one crawl, or any number of scrapes.", "BAD_REQUEST")
    if len({msgspec.json.encode(target.visit()) for target in targets}) > 1:
        raise Refusal(400, "All targets of a monitor need the same scrapeOptions.", "BAD_REQUEST")
    urls = [url for target in targets for url in target.addresses()]
    return {"kind": BATCH, "urls": urls, "options": {"scrape": first.visit()}, **common}


def _target_fields(number: int, target: TargetBody) -> dict[str, Any]:
    fields = target.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return {**fields, "id": target.id or f"target-{number}"}
