"""The config of a site: its schema, the overrides of a job, and the variables of both."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from trapline.errors import InvalidInput, VisitFailed
from trapline.frontier.canonical_url import typed_url
from trapline.model import Format
from trapline.pipeline.options import CrawlOptions
from trapline.queue.schedule.recurrence import Rule
from trapline.store.similarity import LOWEST_THRESHOLD
from trapline.store.sql.sites import SiteRow

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NOT_CRAWL_OPTIONS: Final = frozenset({"rate", "retention", "schedule", "duplicate_threshold"})
_SCRAPE_OPTIONS: Final[tuple[str, ...]] = ("formats", "headers", "mobile")
_Patterns = Annotated[tuple[Annotated[str, Meta(max_length=2000)], ...], Meta(max_length=100)]
_Count = Annotated[int, Meta(ge=1, le=10**9)]


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many versions of a page are kept; None: all that the settings allow."""

    versions: _Count | None = None
    days: _Count | None = None


class SiteSchedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a site is crawled: by a cron rule in a time zone, or at an interval."""

    cron: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    every_seconds: Annotated[int, Meta(ge=60, le=3660 * 86400)] | None = None
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"


class SiteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a site is crawled. Every field has a default, so that `{}` is a config.

    `rate` is the most requests a minute to one host. `schedule` is a cron rule in UTC, or
    a SiteSchedule.
    """

    limit: _Count | None = None
    max_depth: Annotated[int, Meta(ge=0, le=10**6)] | None = None
    allowed_domains: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=255)], ...], Meta(max_length=1000)
    ] = ()
    include: _Patterns = ()
    exclude: _Patterns = ()
    entire_domain: bool = False
    subdomains: bool = False
    ignore_query: bool = False
    similar_urls_once: bool = True
    sitemap: Literal["include", "skip", "only"] = "include"
    follow_nofollow: bool = True
    follow_hidden: bool = True
    ignore_robots: bool = False
    rate: Annotated[float, Meta(gt=0, le=60_000)] | None = None
    delay: Annotated[float, Meta(ge=0, le=60)] | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=1000)] | None = None
    force: bool = False
    headers: Annotated[dict[str, str], Meta(max_length=100)] = {}
    language: str | None = None
    mobile: bool = False
    formats: tuple[Format, ...] = (Format.MARKDOWN, Format.LINKS)
    index: bool = False
    retention: Retention | None = None
    schedule: Annotated[str, Meta(min_length=1, max_length=200)] | SiteSchedule | None = None
    ignore_selectors: _Patterns = ()
    ignore_patterns: _Patterns = ()
    duplicate_threshold: Annotated[int, Meta(ge=LOWEST_THRESHOLD, le=100)] | None = None


def validate_config(config: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return a valid config in its stored form; InvalidInput if no crawl could use it."""
    parsed = _parse(config)
    names = _VARIABLE.findall(msgspec.json.encode(config).decode()) + _VARIABLE.findall(url)
    # Any value of a variable does to validate patterns and selectors.
    _options(parsed, url, dict.fromkeys(names, "1"), None)
    stored: dict[str, Any] = msgspec.to_builtins(parsed)
    if (schedule := schedule_in(stored)) is not None:
        _check_schedule(schedule)
    return stored


def schedule_in(config: Mapping[str, Any]) -> SiteSchedule | None:
    """Return the schedule in a stored config."""
    value = config.get("schedule")
    if value is None:
        return None
    if isinstance(value, str):
        return SiteSchedule(cron=value)
    return msgspec.convert(value, SiteSchedule)


def _check_schedule(schedule: SiteSchedule) -> None:
    every = None if schedule.every_seconds is None else timedelta(seconds=schedule.every_seconds)
    Rule("recurring", schedule.cron, every, schedule.timezone).check()


def base_url_of(url: str) -> str:
    """Return a site's address in canonical form; one with variables stays as it is."""
    names = _VARIABLE.findall(url)
    try:
        canonical = typed_url(_VARIABLE.sub("1", url) if names else url)
    except VisitFailed as error:
        raise InvalidInput(error.message) from None
    return url if names else canonical


def crawl_options(
    site: SiteRow, overrides: Mapping[str, Any], variables: Mapping[str, Any]
) -> CrawlOptions:
    """Return the options of a crawl: the site's config, with the overrides of the job."""
    own = dict(overrides)
    url = str(own.pop("url", None) or site.base_url)
    merged = {**site.config, **own}
    config = _parse({name: value for name, value in merged.items() if value is not None})
    return _options(config, url, variables, site)


def _parse(config: Mapping[str, Any]) -> SiteConfig:
    try:
        return msgspec.convert(dict(config), SiteConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The config cannot be used: {error}.") from None


def _options(
    config: SiteConfig, url: str, variables: Mapping[str, Any], site: SiteRow | None
) -> CrawlOptions:
    values: dict[str, Any] = msgspec.to_builtins(config)
    options = {name: value for name, value in values.items() if name not in _NOT_CRAWL_OPTIONS}
    scrape: dict[str, Any] = {
        name: options.pop(name) for name in _SCRAPE_OPTIONS if name in options
    }
    if config.language is not None:
        scrape["languages"] = [options.pop("language")]
    options["scrape"] = scrape
    if config.rate is not None:
        options["delay"] = min(60.0, max(60.0 / config.rate, config.delay or 0.0))
    filled = _fill({**options, "url": url}, variables)
    return CrawlOptions.parse(**filled, site_id=None if site is None else site.id)


def _fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """Replace `${name}` by the value of the variable, at any depth."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _value(match[1], variables), value)
    if isinstance(value, dict):
        return {key: _fill(inner, variables) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(inner, variables) for inner in value]
    return value


def _value(name: str, variables: Mapping[str, Any]) -> str:
    value = variables.get(name)
    if not isinstance(value, str | int | float):
        raise InvalidInput(f"The variable {name!r} needs a text or a number.")
    return str(value)
