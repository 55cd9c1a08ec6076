"""How a site is crawled: its config, what a job puts over it, and the variables of both."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from trapline.errors import InvalidInput, VisitFailed
from trapline.frontier.url import typed_url
from trapline.model import Format
from trapline.pipeline.options import CrawlOptions
from trapline.queue.ticks import Rule
from trapline.store.likeness import LOWEST_THRESHOLD
from trapline.store.sql.sites import SiteRow

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OWN: Final = frozenset({"rate", "retention", "schedule", "duplicate_threshold"})
_OF_PAGES: Final[tuple[str, ...]] = ("formats", "headers", "mobile")
_Patterns = Annotated[tuple[Annotated[str, Meta(max_length=2000)], ...], Meta(max_length=100)]
_Count = Annotated[int, Meta(ge=1, le=10**9)]


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How much of a page's past is kept; None: all of it, as far as the settings allow."""

    versions: _Count | None = None
    days: _Count | None = None


class SiteSchedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a site is crawled: by a cron rule in a time zone, or at an interval."""

    cron: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    every_seconds: Annotated[int, Meta(ge=60, le=3660 * 86400)] | None = None
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"


class SiteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a site says of its crawls. Every field has a default, so that `{}` is a config.

    `rate` is the most requests a minute to one host. `schedule` is a cron rule, which is in UTC, or
    says more.
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


def checked_config(config: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return a config as it is stored: whole, of known fields, and good for a crawl."""
    parsed = _parsed(config)
    names = _VARIABLE.findall(msgspec.json.encode(config).decode()) + _VARIABLE.findall(url)
    # Any value will do to see whether patterns and selectors can be used.
    _options(parsed, url, dict.fromkeys(names, "1"), None)
    stored: dict[str, Any] = msgspec.to_builtins(parsed)
    if (schedule := schedule_in(stored)) is not None:
        _check_schedule(schedule)
    return stored


def schedule_in(config: Mapping[str, Any]) -> SiteSchedule | None:
    """Return what a stored config says of when the site is crawled."""
    told = config.get("schedule")
    if told is None:
        return None
    return SiteSchedule(cron=told) if isinstance(told, str) else msgspec.convert(told, SiteSchedule)


def _check_schedule(schedule: SiteSchedule) -> None:
    every = None if schedule.every_seconds is None else timedelta(seconds=schedule.every_seconds)
    Rule("recurring", schedule.cron, every, schedule.timezone).check()


def base_url_of(url: str) -> str:
    """Return a site's address in canonical form, variables and all."""
    names = _VARIABLE.findall(url)
    try:
        canonical = typed_url(_VARIABLE.sub("1", url) if names else url)
    except VisitFailed as error:
        raise InvalidInput(error.message) from None
    return url if names else canonical


def crawl_options(
    site: SiteRow, overrides: Mapping[str, Any], variables: Mapping[str, Any]
) -> CrawlOptions:
    """Return what a crawl of this site does: the site's config, under the job's own wishes."""
    given = dict(overrides)
    url = str(given.pop("url", None) or site.base_url)
    merged = {**site.config, **given}
    config = _parsed({name: value for name, value in merged.items() if value is not None})
    return _options(config, url, variables, site)


def _parsed(config: Mapping[str, Any]) -> SiteConfig:
    try:
        return msgspec.convert(dict(config), SiteConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The config cannot be used: {error}.") from None


def _options(
    config: SiteConfig, url: str, variables: Mapping[str, Any], site: SiteRow | None
) -> CrawlOptions:
    values: dict[str, Any] = msgspec.to_builtins(config)
    wishes = {name: value for name, value in values.items() if name not in _OWN}
    scrape: dict[str, Any] = {name: wishes.pop(name) for name in _OF_PAGES if name in wishes}
    if config.language is not None:
        scrape["languages"] = [wishes.pop("language")]
    wishes["scrape"] = scrape
    if config.rate is not None:
        wishes["delay"] = min(60.0, max(60.0 / config.rate, config.delay or 0.0))
    filled = _filled({**wishes, "url": url}, variables)
    return CrawlOptions.parse(**filled, site_id=None if site is None else site.id)


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Put variables where `${name}` stands, however deep."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _value(found[1], variables), value)
    if isinstance(value, dict):
        return {key: _filled(inner, variables) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, variables) for inner in value]
    return value


def _value(name: str, variables: Mapping[str, Any]) -> str:
    value = variables.get(name)
    if not isinstance(value, str | int | float):
        raise InvalidInput(f"The variable {name!r} needs a text or a number.")
    return str(value)
