"""Firecrawl's requests: every default, what is refused and in which words, what it means to us."""

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError

from trapline.api.firecrawl import v1_translation
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal
from trapline.api.firecrawl.requests.crawl_request import BatchBody, CrawlBody
from trapline.api.firecrawl.scrape import ScrapeBody
from trapline.api.firecrawl.search import SearchBody
from trapline.deliver.firecrawl_document import VisitFacts, metadata
from trapline.errors import InvalidInput
from trapline.model import Format, Metadata
from trapline.rendering import Click, Screenshot, Scroll

URL = "https://example.com/"


def scrape(**options: Any) -> ScrapeBody:
    return ScrapeBody.model_validate({"url": URL} | options)


def test_defaults_are_those_of_the_contract() -> None:
    options = scrape().scrape_options()
    assert options.formats == {Format.MARKDOWN}
    assert options.only_main_content
    assert options.remove_base64_images
    assert not options.verify_tls
    assert options.max_age == 4 * 3600
    assert options.store
    assert options.read_files
    crawl = CrawlBody.model_validate({"url": URL}).crawl_options()
    assert (crawl.limit, crawl.sitemap, crawl.similar_urls_once) == (10_000, "include", True)
    assert not crawl.entire_domain
    assert not crawl.ignore_robots


def test_tls_is_verified_when_headers_are_sent() -> None:
    assert scrape(headers={"Cookie": "a=b"}).scrape_options().verify_tls
    asked = scrape(headers={"Cookie": "a=b"}, skipTlsVerification=True)
    assert not asked.scrape_options().verify_tls


@pytest.mark.parametrize(
    "options",
    [
        {"formatz": ["markdown"]},
        {"formats": ["pdf"]},
        {"formats": [{"type": "json", "shema": {}}]},
        {"formats": [{"type": "json", "schema": {"type": "object", "additionalProperties": True}}]},
        {"formats": ["rawBase64", "markdown"]},
        {"formats": [{"type": "changeTracking"}]},
        {"formats": ["screenshot", "screenshot"]},
        {"timeout": 999},
        {"timeout": "5000"},
        {"timeout": 5000, "waitFor": 2501},
        {"waitFor": 60_001},
        {"onlyMainContent": "yes"},
        {"proxy": "fast"},
        {"location": {"country": "XX"}},
        {"parsers": ["word"]},
        {"actions": [{"type": "scrape"}] * 51},
        {"actions": [{}]},
        {"actions": [{"type": "dance"}]},
        {"actions": [{"type": "click"}]},
        {"actions": [{"type": "click", "selector": "a", "twice": True}]},
        {"actions": [{"type": "wait", "milliseconds": 0}]},
        {"actions": [{"type": "screenshot", "quality": 101}]},
        {"actions": [{"type": "pdf", "format": "A9"}]},
        {"browser": "sometimes"},
        {"maxAge": -1},
        {"url": "javascript:alert(1)"},
        {"url": ""},
        {"headers": {"a": 1}},
    ],
)
def test_what_is_wrong_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        scrape(**options)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"profile": {"name": "me"}}, "SCRAPE_ACTIONS_NOT_SUPPORTED"),
        ({"formats": ["audio"]}, "BAD_REQUEST"),
    ],
)
def test_what_this_server_cannot_do_is_refused_by_name(options: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        scrape(**options).scrape_options()
    assert (refused.value.status, refused.value.code) == (400, code)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actions": [{"type": "wait"}]}, "milliseconds' or 'selector'"),
        ({"actions": [{"type": "wait", "milliseconds": 1, "selector": "a"}]}, "not both"),
        (
            {"waitFor": 30_000, "actions": [{"type": "wait", "milliseconds": 30_001}]},
            "cannot exceed 60 seconds",
        ),
        ({"browser": "never", "waitFor": 10}, "needs a browser"),
        ({"browser": "never", "formats": ["screenshot"]}, "needs a browser"),
    ],
)
def test_what_a_browser_cannot_do_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        scrape(**options).scrape_options()


def test_actions_and_pictures_become_options() -> None:
    options = scrape(
        formats=["markdown", {"type": "screenshot", "fullPage": True, "quality": 80}],
        actions=[{"type": "click", "selector": "a", "all": True}, {"type": "scroll"}],
        waitFor=1500,
    ).scrape_options()
    assert options.screenshot == Screenshot(full_page=True, quality=80)
    assert options.actions == (Click(selector="a", all=True), Scroll())
    assert options.wait == 1.5
    assert options.verify_tls
    assert not options.reads_cache
    assert not options.as_stored


@pytest.mark.parametrize("options", [{"formats": ["screenshot"]}, {"actions": [{"type": "pdf"}]}])
def test_a_job_has_no_pictures(options: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="only possible with POST /v2/scrape"):
        CrawlBody.model_validate({"url": URL, "scrapeOptions": options}).crawl_options()
    with pytest.raises(Refusal, match="only possible with POST /v2/scrape"):
        BatchBody.model_validate({"urls": [URL], **options}).visit_options()


def test_a_bad_selector_pattern_or_header_is_refused() -> None:
    with pytest.raises(InvalidInput):
        scrape(includeTags=["p["]).scrape_options()
    with pytest.raises(InvalidInput):
        scrape(headers={"a b": "c"}).scrape_options()
    with pytest.raises(InvalidInput):
        CrawlBody.model_validate({"url": URL, "includePaths": ["("]}).crawl_options()


def test_a_webhook_is_a_url_or_an_object() -> None:
    short = CrawlBody.model_validate({"url": URL, "webhook": "https://me.example/hook"})
    assert short.webhook is not None
    assert short.webhook.webhook().url == "https://me.example/hook"
    for bad in ({"url": "ftp://x"}, {"url": URL, "events": ["nonsense"]}, {"url": URL, "x": 1}, 7):
        with pytest.raises(ValidationError):
            CrawlBody.model_validate({"url": URL, "webhook": bad})


def test_pages_of_a_job_are_kept_although_no_cache_is_wanted() -> None:
    body = BatchBody.model_validate({"urls": [URL], "storeInCache": False})
    assert body.visit_options().scrape.store


def test_a_page_cannot_say_what_we_say() -> None:
    declared = {
        "statusCode": "999",
        "status_code": "999",
        "credits-used": "many",
        "error": "no",
        "ogImage": ("a", "b"),
        "ogLocaleAlternate": "de_DE",
        "viewport": ("x", "y"),
    }
    said = metadata(
        Metadata(declared=declared), VisitFacts(url=URL, source_url="example.com", status=200)
    )
    assert said["statusCode"] == 200
    assert said["creditsUsed"] == 1
    assert "error" not in said
    assert "status_code" not in said
    assert (said["ogImage"], said["ogLocaleAlternate"]) == ("a", ["de_DE"])
    assert said["viewport"] == ["x", "y"]
    assert said["sourceURL"] == "example.com"


def test_v1_becomes_v2() -> None:
    body = v1_translation.validate(
        ScrapeBody,
        v1_translation.scrape(
            {
                "url": URL,
                "formats": ["markdown", "extract"],
                "extract": {"schema": {"type": "object", "properties": {"a": {}}}},
                "parsePDF": False,
            }
        ),
    )
    assert body.names == {"markdown", "json"}
    assert body.llm_requests()[0].schema == {"type": "object", "properties": {"a": {}}}
    assert not body.scrape_options().read_files
    crawl = v1_translation.validate(
        CrawlBody,
        v1_translation.crawl(
            {"url": URL, "maxDepth": 2, "allowBackwardLinks": True, "ignoreSitemap": True}
        ),
    ).crawl_options()
    assert (crawl.max_depth, crawl.entire_domain, crawl.sitemap) == (2, True, "skip")
    assert v1_translation.map_({"url": URL, "sitemapOnly": True})["sitemap"] == "only"


def test_a_search_has_domains_and_categories_in_its_words() -> None:
    body = SearchBody.model_validate(
        {"query": "q", "includeDomains": ["a.com", "b.com"], "categories": ["pdf"]}
    )
    asked = body.web_query(body.sources[0])
    assert asked.search_string() == "q filetype:pdf (site:a.com OR site:b.com)"
    for bad in (
        {"includeDomains": ["a"], "excludeDomains": ["b"]},
        {"categories": ["developer", "pdf"]},
        {"limit": 101},
    ):
        with pytest.raises(ValidationError):
            SearchBody.model_validate({"query": "q"} | bad)


def test_errors_have_the_bodies_of_the_contract() -> None:
    app = FastAPI()
    app.router.route_class = FirecrawlRoute

    @app.post("/x")
    async def take(body: ScrapeBody) -> dict[str, str]:
        return {"url": body.url}

    client = TestClient(app)
    good = client.post("/x", json={"url": URL, "origin": "js-sdk@1", "integration": "_e2e-test"})
    assert good.json() == {"url": URL}
    unknown = client.post("/x", json={"url": URL, "nonsense": 1})
    assert unknown.status_code == 400
    assert unknown.json()["error"] == "Bad Request"
    assert unknown.json()["details"][0]["code"] == "unrecognized_keys"
    custom = client.post("/x", json={"url": URL, "timeout": 1000, "waitFor": 900}).json()
    assert custom["error"] == "waitFor must not exceed half of timeout"
    assert (custom["success"], custom["code"]) == (False, "BAD_REQUEST")
    broken = client.post("/x", content=b"{", headers={"Content-Type": "application/json"})
    assert broken.status_code == 400
    assert broken.json()["code"] == "BAD_REQUEST_INVALID_JSON"
    huge = client.post("/x", content=b'{"url": "' + b"x" * (10 * 2**20) + b'"}')
    assert huge.status_code == 413
