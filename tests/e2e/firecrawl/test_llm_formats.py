"""Formats that a language model makes, and web search, against servers that speak their protocols."""

import json
import time
from typing import Any

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.types import ScrapeOptions
from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError

from tests.site.site import Site
from tests.support.llm_server import LlmServer

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "legs": {"type": "integer"}},
    "required": ["title", "legs"],
}
ARTICLE = "/journal/the-bees-that-keep-appointments/"


@pytest.fixture
def client(knowing_site: str, llm_server: LlmServer) -> Firecrawl:
    llm_server.asked.clear()
    llm_server.keys.clear()
    llm_server.searched.clear()
    llm_server.status, llm_server.results = 200, []
    return Firecrawl(api_url=knowing_site, api_key="fc-anything")


def test_data_by_a_schema(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    llm_server.say = lambda _: '{"title": "Bees", "legs": 6}'
    found = client.scrape(
        site.at(ARTICLE), formats=[{"type": "json", "schema": SCHEMA, "prompt": "count legs"}]
    )
    assert found.json == {"title": "Bees", "legs": 6}
    (request,) = llm_server.asked
    assert request["model"] == "tiny"
    assert llm_server.keys == ["Bearer sk-1"]
    asked = request["messages"][-1]["content"]
    assert "count legs" in asked
    assert "appointments" in asked
    before = client.get_token_usage()
    assert before.plan_tokens - before.remaining_tokens >= 120


def test_an_answer_that_does_not_fit_is_asked_for_once_more(
    client: Firecrawl, llm_server: LlmServer, site: Site
) -> None:
    answers = iter(
        ['{"title": "Bees", "legs": "six"}', '```json\n{"title": "Bees", "legs": 6}\n```']
    )
    llm_server.say = lambda _: next(answers)
    found = client.scrape(site.at(ARTICLE), formats=[{"type": "json", "schema": SCHEMA}])
    assert found.json == {"title": "Bees", "legs": 6}
    assert len(llm_server.asked) == 2
    assert "$.legs" in llm_server.asked[1]["messages"][-1]["content"]


def test_an_answer_that_never_fits_is_a_warning(
    client: Firecrawl, llm_server: LlmServer, site: Site
) -> None:
    llm_server.say = lambda _: "I am not JSON"
    found = client.scrape(
        site.at(ARTICLE), formats=["markdown", {"type": "json", "schema": SCHEMA}]
    )
    assert found.json is None
    assert found.markdown
    assert "cannot be used" in (found.warning or "")
    assert len(llm_server.asked) == 2


def test_a_model_that_is_broken_is_a_warning(
    client: Firecrawl, llm_server: LlmServer, site: Site
) -> None:
    llm_server.status = 404
    found = client.scrape(site.at(ARTICLE), formats=["markdown", "summary"])
    assert "no such model" in (found.warning or "")


def test_a_summary_and_an_answer(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    def say(request: dict[str, Any]) -> str:
        return "Yes." if "Do bees" in request["messages"][-1]["content"] else "About bees."

    llm_server.say = say
    found = client._v2_client.http_client.post(
        "/v2/scrape",
        {
            "url": site.at(ARTICLE),
            "formats": ["summary", {"type": "question", "question": "Do bees return?"}],
        },
    ).json()["data"]
    assert (found["summary"], found["answer"]) == ("About bees.", "Yes.")


def test_a_long_page_is_cut_to_the_limit_of_tokens(
    client: Firecrawl, llm_server: LlmServer, site: Site
) -> None:
    llm_server.say = lambda _: "{}"
    found = client.scrape(
        site.at("/all-pages/"),
        formats=[{"type": "json", "prompt": "anything"}],
        only_main_content=False,
    )
    assert "left out" in (found.warning or "")
    assert len(llm_server.asked[0]["messages"][-1]["content"]) < 10_000


def test_a_schema_that_is_none_is_refused(client: Firecrawl, site: Site) -> None:
    with pytest.raises(BadRequestError):
        client.scrape(site.at(ARTICLE), formats=[{"type": "json", "schema": {"type": "no-type"}}])


def test_every_page_of_a_crawl_is_asked_about(
    client: Firecrawl, llm_server: LlmServer, site: Site
) -> None:
    llm_server.say = lambda _: '{"title": "A", "legs": 2}'
    options = ScrapeOptions(formats=[{"type": "json", "schema": SCHEMA}])
    job = client.crawl(
        site.at("/events/"), limit=3, sitemap="skip", scrape_options=options, poll_interval=1
    )
    assert [page.json for page in job.data] == [{"title": "A", "legs": 2}] * 3


def test_changes_by_field_in_a_batch_and_in_a_scrape(
    client: Firecrawl, llm_server: LlmServer, site: Site
) -> None:
    tracked = {"type": "changeTracking", "modes": ["json"], "schema": SCHEMA, "tag": "fields"}
    body = {"formats": ["markdown", tracked], "maxAge": 0}
    http = client._v2_client.http_client

    def batch() -> dict[str, Any]:
        urls = {"urls": [site.at("/about/")]}
        job_id = http.post("/v2/batch/scrape", body | urls).json()["id"]
        for _ in range(600):
            status = http.get(f"/v2/batch/scrape/{job_id}").json()
            if status["status"] == "completed":
                break
            time.sleep(0.1)
        found: dict[str, Any] = status["data"][0]["changeTracking"]
        return found

    llm_server.say = lambda _: '{"title": "Bees", "legs": 6}'
    assert "json" not in batch()
    # What has not changed is not read again.
    assert batch()["json"] == {}
    assert len(llm_server.asked) == 1
    site.edit("/about/", "lens grinder", "contraptions")
    llm_server.say = lambda _: '{"title": "Bees", "legs": 8}'
    assert batch()["json"] == {"legs": {"previous": 6, "current": 8}}
    found = http.post("/v2/scrape", body | {"url": site.at("/about/")}).json()["data"]
    assert (found["changeTracking"]["changeStatus"], found["changeTracking"]["json"]) == (
        "same",
        {},
    )
    assert len(llm_server.asked) == 2


def test_a_crawl_by_prompt(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    llm_server.say = lambda _: '{"includePaths": ["^/journal/.*$"], "limit": 3}'
    preview = client.crawl_params_preview(site.url, "only the journal")
    assert preview.include_paths == ["^/journal/.*$"]
    job = client.crawl(
        site.at("/journal/"), prompt="only the journal", sitemap="skip", poll_interval=1
    )
    assert job.completed == 3
    assert all("/journal/" in (page.metadata.source_url or "") for page in job.data)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_extraction_over_pages(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    llm_server.say = lambda _: '{"title": "Both", "legs": 8}'
    urls = [site.at("/glossary/bee-line/"), site.at("/glossary/traplining/")]
    found = client.extract(
        urls, prompt="the words", schema=SCHEMA, show_sources=True, poll_interval=1
    )
    assert found.status == "completed"
    assert found.data == {"title": "Both", "legs": 8}
    asked = llm_server.asked[-1]["messages"][-1]["content"]
    assert all(url in asked for url in urls)


def test_web_search(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    llm_server.results = [
        {"url": site.at("/about/"), "title": "About us", "content": "who we are"},
        {"url": site.at("/about/"), "title": "twice", "content": ""},
        {"url": site.at("/contact/"), "title": "Contact", "content": "write to us"},
    ]
    found = client.search("hollin wren", limit=5)
    assert [item.title for item in found.web or []] == ["About us", "Contact"]
    assert llm_server.searched[0]["q"] == ["hollin wren"]
    assert llm_server.searched[0]["categories"] == ["general"]


def test_web_search_with_the_pages(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    llm_server.results = [
        {"url": site.at(ARTICLE), "title": "Bees", "content": "bees"},
        {"url": "http://10.0.0.1/", "title": "Private", "content": "no"},
    ]
    found = client.search("bees", scrape_options=ScrapeOptions(formats=["markdown"]))
    document, refused = found.web or []
    assert "bees" in document.markdown.lower()
    assert document.metadata.source_url == site.at(ARTICLE)
    assert "10.0.0.1" in json.dumps(refused.model_dump())


def test_news_and_images(client: Firecrawl, llm_server: LlmServer) -> None:
    llm_server.results = [
        {
            "url": "http://example.com/n",
            "title": "N",
            "content": "c",
            "img_src": "http://example.com/i.png",
            "resolution": "640x480",
        }
    ]
    found = client.search("x", sources=["news", "images"])
    assert found.news is not None
    assert found.images is not None
    assert found.news[0].snippet == "c"
    assert (found.images[0].image_width, found.images[0].image_height) == (640, 480)


def test_a_broken_search_engine_is_an_error(client: Firecrawl, llm_server: LlmServer) -> None:
    llm_server.status = 500
    with pytest.raises(FirecrawlError):
        client.search("x")


def test_search_without_an_engine_asks_the_own_index_and_says_so(served_site: str) -> None:
    http = Firecrawl(api_url=served_site, api_key="x")._v2_client.http_client
    answer = http.post("/v2/search", {"query": "x", "sources": ["web", "images"]}).json()
    assert answer["data"] == {"web": [], "images": []}
    assert "TRAPLINE_SEARXNG_URL" in answer["warning"]


def test_tokens_are_counted_by_month(client: Firecrawl, llm_server: LlmServer, site: Site) -> None:
    llm_server.say = lambda _: "fine"
    client.scrape(site.at(ARTICLE), formats=["summary"])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = client._v2_client.http_client.get("/v2/team/token-usage/historical").json()
        if answer["periods"]:
            break
        time.sleep(0.1)
    assert answer["periods"][-1]["tokensUsed"] >= 120
