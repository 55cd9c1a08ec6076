"""Every option of every request model is done, refused, or answered with a warning that names it."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pydantic import BaseModel, ValidationError

from trapline.api.firecrawl.errors import Refusal
from trapline.api.firecrawl.extract import ExtractBody
from trapline.api.firecrawl.map import MapBody
from trapline.api.firecrawl.parse import ParseOptions
from trapline.api.firecrawl.requests.crawl_request import BatchBody, CrawlBody, WebhookBody
from trapline.api.firecrawl.requests.monitor_request import MonitorBody, MonitorChange, TargetBody
from trapline.api.firecrawl.requests.scrape_options import (
    Location,
    PdfParser,
    RedactionBody,
    ScrapeOptionsBody,
)
from trapline.api.firecrawl.scrape import ScrapeBody
from trapline.api.firecrawl.search import SearchBody

URL: Final = "https://a.example/"
DONE: Final = "done"


class Warned:
    """A value that is accepted, and named in a warning."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        self.value, self.name = value, name


class Refused:
    """A value that is refused."""

    def __init__(self, value: Any) -> None:
        self.value = value


_SCRAPE: Final[dict[str, Any]] = {
    "formats": DONE,
    "headers": DONE,
    "includeTags": DONE,
    "excludeTags": DONE,
    "onlyMainContent": DONE,
    "onlyCleanContent": Warned(value=True),
    "timeout": DONE,
    "waitFor": DONE,
    "mobile": DONE,
    "parsers": Warned([{"type": "pdf", "mode": "ocr"}], "parsers.mode"),
    "actions": DONE,
    "location": DONE,
    "skipTlsVerification": DONE,
    "removeBase64Images": DONE,
    "blockAds": DONE,
    "proxy": Warned("stealth"),
    "maxAge": DONE,
    "minAge": DONE,
    "storeInCache": DONE,
    "lockdown": DONE,
    "fastMode": Warned(value=True),
    "useMock": Warned("a"),
    "profile": Refused({"name": "a"}),
    "browser": DONE,
    "redactPII": DONE,
    "threatProtection": Warned({}),
    "auditMetadata": Warned({"username": "a"}),
    "checkPromptInjection": Warned(value=True),
    "safeMode": Warned(value=True),
    "domainTools": Warned(value=True),
    "toolDetail": Warned("full"),
}
_SENDER: Final = {"origin": DONE, "integration": DONE}
_RETENTION: Final = {"zeroDataRetention": DONE}
_FIELDS: Final[dict[type[BaseModel], tuple[dict[str, Any], dict[str, Any]]]] = {
    ScrapeBody: ({"url": URL}, {"url": DONE, **_SCRAPE, **_SENDER, **_RETENTION}),
    ParseOptions: ({}, {**_SCRAPE, **_SENDER, **_RETENTION}),
    BatchBody: (
        {"urls": [URL]},
        {
            **_SCRAPE,
            **_SENDER,
            **_RETENTION,
            "urls": DONE,
            "webhook": DONE,
            "appendToId": DONE,
            "ignoreInvalidURLs": DONE,
            "maxConcurrency": DONE,
        },
    ),
    CrawlBody: (
        {"url": URL},
        {
            **_SENDER,
            **_RETENTION,
            **dict.fromkeys(
                [
                    "url",
                    "prompt",
                    "includePaths",
                    "excludePaths",
                    "maxDiscoveryDepth",
                    "limit",
                    "crawlEntireDomain",
                    "allowExternalLinks",
                    "allowSubdomains",
                    "ignoreRobotsTxt",
                    "robotsUserAgent",
                    "ignoreQueryParameters",
                    "regexOnFullURL",
                    "sitemap",
                    "deduplicateSimilarURLs",
                    "delay",
                    "maxConcurrency",
                    "webhook",
                ],
                DONE,
            ),
            "scrapeOptions": Refused({"actions": [{"type": "scrape"}]}),
        },
    ),
    MapBody: (
        {"url": URL},
        {
            **_SENDER,
            **dict.fromkeys(
                [
                    "url",
                    "search",
                    "sitemap",
                    "includeSubdomains",
                    "ignoreQueryParameters",
                    "limit",
                    "timeout",
                    "location",
                    "headers",
                    "filterByPath",
                    "useIndex",
                    "ignoreCache",
                    "includePaths",
                    "excludePaths",
                    "allowExternalLinks",
                ],
                DONE,
            ),
            "useMock": Warned("a"),
            "threatProtection": Warned({}),
            "auditMetadata": Warned({}),
        },
    ),
    SearchBody: (
        {"query": "a"},
        {
            **_SENDER,
            **_RETENTION,
            **dict.fromkeys(
                [
                    "query",
                    "limit",
                    "categories",
                    "includeDomains",
                    "excludeDomains",
                    "tbs",
                    "lang",
                    "timeout",
                ],
                DONE,
            ),
            "sources": Warned(["academic"], "sources.academic"),
            "filter": Warned("a"),
            "country": Warned("de"),
            "location": Warned("Graz"),
            "safe": Warned("strict"),
            "ignoreInvalidURLs": Warned(value=True),
            "asyncScraping": Warned(value=True),
            "highlights": Warned(value=True),
            "enterprise": Warned(["zdr"]),
            "scrapeOptions": DONE,
            "threatProtection": Warned({}),
            "domainTools": Warned(value=True),
            "toolDetail": Warned("full"),
        },
    ),
    ExtractBody: (
        {"urls": [URL], "prompt": "a"},
        {
            **_SENDER,
            **dict.fromkeys(
                [
                    "urls",
                    "prompt",
                    "systemPrompt",
                    "schema",
                    "showSources",
                    "ignoreInvalidURLs",
                    "webhook",
                    "enableWebSearch",
                ],
                DONE,
            ),
            "limit": Warned(1),
            "ignoreSitemap": Warned(value=True),
            "includeSubdomains": Warned(value=False),
            "allowExternalLinks": Warned(value=True),
            "scrapeOptions": Refused({"redactPII": True}),
            "timeout": Warned(1000),
            "agent": Warned({}),
            "urlTrace": Warned(value=True),
            "zeroDataRetention": Refused(value=True),
        },
    ),
}
# Each part of a request is done wholly, or its fields stand in the table of what holds it.
_PARTS: Final[dict[type[BaseModel], set[str]]] = {
    Location: {"country", "languages"},
    RedactionBody: {"mode", "entities", "replaceStyle"},
    PdfParser: {"type", "mode", "maxPages", "pages", "blocks", "pageMarkers"},
    WebhookBody: {"url", "headers", "metadata", "events"},
}


def _aliases(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("model", [*_FIELDS, *_PARTS], ids=lambda model: model.__name__)
def test_every_field_is_classified(model: type[BaseModel]) -> None:
    classified = set(_FIELDS[model][1]) if model in _FIELDS else _PARTS[model]
    assert classified == _aliases(model)


def _cases(kind: type) -> Iterator[Any]:
    for model, (base, fields) in _FIELDS.items():
        for name, expected in fields.items():
            if isinstance(expected, kind):
                yield pytest.param(model, base, name, expected, id=f"{model.__name__}.{name}")


@pytest.mark.parametrize(("model", "base", "name", "expected"), list(_cases(Warned)))
def test_an_option_without_effect_is_named_in_a_warning(
    model: Any, base: dict[str, Any], name: str, expected: Warned
) -> None:
    body = model.model_validate({**base, name: expected.value})
    options = body.scrape_options if isinstance(body, CrawlBody) else body
    assert (expected.name or name) in " ".join(options.warnings())
    assert not model.model_validate(base).warnings()


@pytest.mark.parametrize(("model", "base", "name", "expected"), list(_cases(Refused)))
def test_an_option_that_cannot_be_ignored_is_refused(
    model: Any, base: dict[str, Any], name: str, expected: Refused
) -> None:
    with pytest.raises((Refusal, ValidationError)):
        _translate(model.model_validate({**base, name: expected.value}))


def _translate(body: Any) -> None:
    if isinstance(body, ExtractBody):
        body.refuse()
    elif isinstance(body, CrawlBody):
        body.crawl_options()
    elif isinstance(body, SearchBody):
        body.scrape_options.scrape_options()
    else:
        body.scrape_options()


@pytest.mark.parametrize("parser", [{"pages": [1]}, {"blocks": True}, {"pageMarkers": True}])
def test_each_part_of_a_parser_is_named(parser: dict[str, Any]) -> None:
    body = ScrapeOptionsBody.model_validate({"parsers": [{"type": "pdf"} | parser]})
    assert f"parsers.{next(iter(parser))}" in " ".join(body.warnings())


def test_monitors_refuse_what_they_cannot_do() -> None:
    assert {"webhook", "notification", "goal", "judgeEnabled"} <= _aliases(MonitorBody)
    assert {"webhook", "notification", "goal", "judgeEnabled"} <= _aliases(MonitorChange)
    with pytest.raises(ValidationError):
        TargetBody.model_validate(
            {"type": "scrape", "urls": [URL], "scrapeOptions": {"redactPII": True}}
        )


def test_new_fields_of_clients_do_not_break_a_search() -> None:
    body = SearchBody.model_validate({"query": "a", "brandNew": {"deep": 1}})
    assert "brandNew" in " ".join(body.warnings())
    with pytest.raises(ValidationError):
        ScrapeBody.model_validate({"url": URL, "brandNew": 1})


@pytest.mark.parametrize(
    "value", [{"mode": "sloppy"}, {"entities": ["SHOE"]}, {"entities": []}, "yes"]
)
def test_unknown_modes_of_redaction_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        ScrapeBody.model_validate({"url": URL, "redactPII": value})


@pytest.mark.parametrize("format_", ["html", "rawHtml", "rawBase64"])
def test_a_format_that_redaction_does_not_cover_is_refused(format_: str) -> None:
    body = ScrapeBody.model_validate({"url": URL, "redactPII": True, "formats": [format_]})
    with pytest.raises(Refusal, match=format_):
        body.scrape_options()


def test_change_tracking_never_reads_the_cache() -> None:
    formats = ["markdown", {"type": "changeTracking"}]
    body = ScrapeBody.model_validate({"url": URL, "formats": formats, "maxAge": 60_000})
    assert not body.scrape_options().reads_cache


@pytest.mark.parametrize("url", ["not-a-valid-url", "word", "http://"])
def test_a_word_is_no_url(url: str) -> None:
    with pytest.raises(ValidationError):
        ScrapeBody.model_validate({"url": url})


@pytest.mark.parametrize("url", ["example.com", "localhost:8000/a", "http://intranet/", "1.1.1.1"])
def test_hosts_are_urls(url: str) -> None:
    assert ScrapeBody.model_validate({"url": url}).url == url
