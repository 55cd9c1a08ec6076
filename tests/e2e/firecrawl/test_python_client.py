"""firecrawl-py, unmodified, against a running server: contents, not shapes."""

import time
from uuid import uuid4

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.types import BatchScrapeJob, ScrapeOptions
from firecrawl.v2.utils.error_handler import (
    BadRequestError,
    FirecrawlError,
    WebsiteNotSupportedError,
)

from tests.site.rules import Group, Rules
from tests.site.site import Site

ARTICLE = "/journal/the-bees-that-keep-appointments/"


@pytest.fixture
def client(served_site: str) -> Firecrawl:
    return Firecrawl(api_url=served_site, api_key="fc-anything")


def test_a_page_in_every_format(client: Firecrawl, site: Site) -> None:
    url = site.at(ARTICLE)
    found = client.scrape(
        url,
        formats=["markdown", "html", "rawHtml", "links", "images", "summary", "branding"],
        max_age=0,
    )
    page = site.page(ARTICLE)
    assert page.main_text is not None
    words = page.main_text.split()
    assert sum(word in (found.markdown or "") for word in words) > 0.9 * len(words)
    assert "<h1" in (found.html or "")
    assert "<nav" not in (found.html or "")
    assert (found.raw_html or "").lower().startswith("<!doctype html>")
    assert site.at("/journal/") in (found.links or [])
    assert all(link.startswith("http") for link in found.links or [])
    assert found.images is not None
    assert found.summary
    assert found.metadata is not None
    assert "appointments" in (found.metadata.title or "")
    assert found.metadata.source_url == url
    assert found.metadata.status_code == 200
    assert found.metadata.language == "en"
    assert found.metadata.credits_used == 1


def test_only_markdown_is_what_no_options_mean(client: Firecrawl, site: Site) -> None:
    found = client.scrape(site.at("/manual/battery.html"))
    assert "battery" in (found.markdown or "").lower()
    assert found.html is None
    assert found.raw_html is None
    assert found.links is None


def test_the_second_scrape_comes_from_the_cache_and_max_age_0_does_not(
    client: Firecrawl, site: Site
) -> None:
    url = site.at("/glossary/rime/")
    first = client.scrape(url, max_age=0)
    again = client.scrape(url, max_age=600_000)
    fresh = client.scrape(url, max_age=0)
    assert first.metadata.cache_state is None
    assert again.metadata.cache_state == "hit"
    assert again.markdown == first.markdown
    assert fresh.metadata.cache_state is None


def test_tags_are_included_and_excluded(client: Firecrawl, site: Site) -> None:
    found = client.scrape(site.at(ARTICLE), include_tags=["h1"], max_age=0)
    assert (found.markdown or "").strip().startswith("# ")
    assert len((found.markdown or "").splitlines()) < 5
    whole = client.scrape(site.at(ARTICLE), only_main_content=False, max_age=0)
    assert len(whole.markdown or "") > len(client.scrape(site.at(ARTICLE)).markdown or "")


def test_attributes_are_read(client: Firecrawl, site: Site) -> None:
    # The client drops this field, so the answer itself is read.
    wanted = {"type": "attributes", "selectors": [{"selector": "html", "attribute": "lang"}]}
    answer = client._v2_client.http_client.post(
        "/v2/scrape", {"url": site.at(ARTICLE), "formats": [wanted], "maxAge": 0}
    )
    assert answer.json()["data"]["attributes"] == [
        {"selector": "html", "attribute": "lang", "values": ["en"]}
    ]


def test_a_pdf_is_read(client: Firecrawl, site: Site) -> None:
    found = client.scrape(site.at("/downloads/price-list.pdf"))
    assert "A pivot with a new bushing: 45 euros" in (found.markdown or "")
    assert found.metadata.content_type == "application/pdf"
    assert found.metadata.num_pages is not None
    assert found.metadata.num_pages >= 1


def test_a_missing_page_is_a_document_that_says_so(client: Firecrawl, site: Site) -> None:
    found = client.scrape(site.at("/shop/p/sextant"), max_age=0)
    assert found.metadata.status_code in (404, 410)
    assert found.metadata.error


def test_change_tracking_sees_an_edit(client: Firecrawl, site: Site) -> None:
    url, formats = (
        site.at("/about/"),
        ["markdown", {"type": "changeTracking", "modes": ["git-diff"]}],
    )
    new = client.scrape(url, formats=formats, max_age=0)
    assert new.change_tracking["changeStatus"] == "new"
    same = client.scrape(url, formats=formats, max_age=0)
    assert same.change_tracking["changeStatus"] == "same"
    assert same.change_tracking["previousScrapeAt"]
    site.edit("/about/", "eleven", "twelve")
    changed = client.scrape(url, formats=formats, max_age=0)
    assert changed.change_tracking["changeStatus"] == "changed"
    assert "twelve" in changed.change_tracking["diff"]["text"]


def test_a_format_that_needs_a_language_model_names_the_setting(
    client: Firecrawl, site: Site
) -> None:
    with pytest.raises(BadRequestError, match="TRAPLINE_LLM_URL"):
        client.scrape(site.url, formats=[{"type": "json", "prompt": "the title"}])


def test_errors_are_those_of_the_contract(client: Firecrawl, site: Site) -> None:
    with pytest.raises(BadRequestError):
        client.scrape("http://")
    with pytest.raises(WebsiteNotSupportedError):
        client.scrape("http://10.0.0.1/")
    with pytest.raises(WebsiteNotSupportedError, match="robots"):
        client.scrape(site.at("/private/ledger/"))
    with pytest.raises(FirecrawlError, match="not found"):
        client.get_crawl_status(str(uuid4()))
    with pytest.raises(BadRequestError, match="Invalid job ID"):
        client.get_crawl_status("no-uuid")


def test_a_crawl_to_its_end(client: Firecrawl, site: Site) -> None:
    job = client.crawl(
        site.at("/manual/"),
        limit=8,
        sitemap="skip",
        max_concurrency=8,
        scrape_options=ScrapeOptions(formats=["markdown", "links"]),
        poll_interval=1,
    )
    assert job.status == "completed"
    assert (job.completed, job.total, job.credits_used) == (8, 8, 8)
    assert len(job.data) == 8
    urls = {page.metadata.source_url for page in job.data}
    assert len(urls) == 8
    assert all(url.startswith(site.at("/manual/")) for url in urls)
    assert all(page.markdown for page in job.data)
    assert all(page.html is None for page in job.data)
    seen = site.log.pages()
    assert {url for url in seen if "/manual/" in url} == urls


def test_a_crawl_is_started_watched_and_paged(client: Firecrawl, site: Site) -> None:
    started = client.start_crawl(site.at("/glossary/"), limit=25, sitemap="skip", max_concurrency=8)
    assert started.url.endswith(f"/v2/crawl/{started.id}")
    running = client.get_active_crawls()
    assert started.id in {crawl.id for crawl in running.crawls}
    _until_ended(client, started.id)
    body = _raw(client, f"/v2/crawl/{started.id}?limit=10")
    assert len(body["data"]) == 10
    assert body["next"].startswith(client._v2_client.http_client.api_url)
    second = _raw(client, body["next"])
    third = _raw(client, second["next"])
    assert len(third["data"]) == 5
    assert "next" not in third
    pages = [*body["data"], *second["data"], *third["data"]]
    assert len({page["metadata"]["sourceURL"] for page in pages}) == 25
    skipped = _raw(client, f"/v2/crawl/{started.id}?skip=20&limit=10")
    assert [page["metadata"]["sourceURL"] for page in skipped["data"]] == [
        page["metadata"]["sourceURL"] for page in third["data"]
    ]


def test_a_cancelled_crawl_is_cancelled_in_the_next_call(client: Firecrawl, site: Site) -> None:
    started = client.start_crawl(site.url, limit=200, delay=1)
    assert client.cancel_crawl(started.id) is True
    assert client.get_crawl_status(started.id).status == "cancelled"
    done = client.start_crawl(site.at("/thin/1/"), limit=1, sitemap="skip")
    _until_ended(client, done.id)
    assert client.cancel_crawl(done.id) is False


def test_errors_of_a_crawl_are_listed(client: Firecrawl, site: Site) -> None:
    site.fail("/trails/mill-path/", status=404)
    job = client.start_crawl(site.at("/trails/"), limit=12, sitemap="skip", max_concurrency=8)
    assert client.wait_crawl(job.id, poll_interval=1, timeout=60).status == "completed"
    errors = client.get_crawl_errors(job.id).errors
    assert [error.url for error in errors if "mill-path" in error.url]


def test_what_robots_txt_forbids_is_named_after_a_crawl(client: Firecrawl, site: Site) -> None:
    job = client.start_crawl(site.url, limit=2, sitemap="skip")
    _until_ended(client, job.id)
    blocked = client.get_crawl_errors(job.id).robots_blocked
    assert blocked
    assert all("/private/" in url or "/search" in url for url in blocked)
    assert "robots.txt" in _raw(client, f"/v2/crawl/{job.id}")["warning"]


def test_forbidden_pages_that_only_a_sitemap_names_are_named_too(
    client: Firecrawl, site: Site
) -> None:
    host = "half.robots.test"
    secret = site.at("/closed/nobody-links-here/", host)
    site.set_rules(Rules((Group(("*",), (("disallow", "/closed/"),)),), ("/list.txt",)), host)
    listed = f"{secret}\n{site.at('/open/', host)}\n".encode()
    site.change("/list.txt", host, body=listed, content_type="text/plain")
    job = client.start_crawl(site.at("/", host), limit=10, sitemap="only")
    _until_ended(client, job.id)
    assert client.get_crawl_errors(job.id).robots_blocked == [secret]
    assert secret not in site.log.pages()


def test_a_batch_with_bad_urls_then_more_of_it(client: Firecrawl, site: Site) -> None:
    urls = [site.at(f"/glossary/{word}/") for word in ("azimuth", "blaze", "col")]
    started = client.start_batch_scrape([*urls, "http://"], formats=["markdown"])
    assert started.invalid_urls == ["http://"]
    first = _batch_ended(client, started.id)
    assert {page.metadata.source_url for page in first.data} == set(urls)
    more = site.at("/glossary/fix/")
    appended = client.start_batch_scrape([more], append_to_id=started.id)
    assert appended.id == started.id
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = client.get_batch_scrape_status(started.id)
        if status.status == "completed" and len(status.data) == 4:
            break
        time.sleep(0.2)
    assert {page.metadata.source_url for page in status.data} == {*urls, more}
    assert client.get_batch_scrape_errors(started.id).errors == []


def test_a_watcher_sees_every_page_of_a_crawl(client: Firecrawl, site: Site) -> None:
    started = client.start_crawl(site.at("/forum/"), limit=10, sitemap="skip", max_concurrency=4)
    assert {d["metadata"]["sourceURL"] for d in _watched(client, started.id, "crawl")} == {
        page.metadata.source_url for page in client.get_crawl_status(started.id).data
    }


def test_a_watcher_sees_every_page_of_a_batch(client: Firecrawl, site: Site) -> None:
    urls = [site.at(f"/glossary/{word}/") for word in ("haw", "leat", "loupe", "scree")]
    started = client.start_batch_scrape(urls)
    seen = _watched(client, started.id, "batch")
    assert {document["metadata"]["sourceURL"] for document in seen} == set(urls)


def test_usage_is_told(client: Firecrawl, site: Site) -> None:
    client.scrape(site.at("/contact/"), max_age=0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        usage = client.get_credit_usage()
        if usage.plan_credits and usage.remaining_credits < usage.plan_credits:
            break
        time.sleep(0.2)
    assert usage.remaining_credits < usage.plan_credits
    periods = _raw(client, "/v2/team/credit-usage/historical")["periods"]
    assert sum(period["creditsUsed"] for period in periods) >= 1
    assert client.get_token_usage().remaining_tokens > 0
    concurrency = client.get_concurrency()
    assert concurrency.concurrency >= 0
    assert concurrency.max_concurrency >= 1
    queue = client.get_queue_status()
    assert queue.jobs_in_queue >= 0


def test_a_map_lists_what_the_site_has(client: Firecrawl, site: Site) -> None:
    found = client.map(site.url, sitemap="only", limit=1000)
    urls = {link.url for link in found.links}
    assert site.at("/attic/first/") in urls
    assert len(urls) > 50
    chosen = client.map(site.url, search="bees", limit=5)
    assert any("bees" in link.url for link in chosen.links)


def test_a_file_is_parsed(client: Firecrawl, site: Site) -> None:
    pdf = site.page("/downloads/price-list.pdf").body
    found = client.parse(pdf, filename="price-list.pdf", content_type="application/pdf")
    assert "New glass: 30 euros" in (found.markdown or "")
    names = {known.format for known in client.get_parse_formats()}
    assert {"pdf", "docx", "xlsx"} <= names


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_older_api_answers_too(served_site: str, site: Site) -> None:
    older = Firecrawl(api_url=served_site, api_key="fc-anything").v1
    found = older.scrape_url(site.at(ARTICLE), formats=["markdown", "links"])
    assert "bees" in (found.markdown or "").lower()
    assert site.at("/journal/") in (found.links or [])
    job = older.crawl_url(site.at("/services/"), limit=3, ignore_sitemap=True, poll_interval=1)
    assert (job.status, len(job.data)) == ("completed", 3)
    mapped = older.map_url(site.url, sitemap_only=True)
    assert site.at("/attic/first/") in (mapped.links or [])


def _watched(client: Firecrawl, job_id: str, kind: str) -> list[dict[str, dict[str, str]]]:
    watcher = client.watcher(job_id, kind=kind, timeout=60)
    done: list[object] = []
    watcher.add_event_listener("done", done.append)
    watcher.start()
    deadline = time.monotonic() + 60
    while not done and time.monotonic() < deadline:
        time.sleep(0.05)
    watcher.stop()
    assert done, "the watcher was not told of the end"
    return watcher.data


def _until_ended(client: Firecrawl, job_id: str) -> None:
    deadline = time.monotonic() + 60
    while client.get_crawl_status(job_id).status == "scraping":
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _batch_ended(client: Firecrawl, job_id: str) -> BatchScrapeJob:
    deadline = time.monotonic() + 60
    while (status := client.get_batch_scrape_status(job_id)).status == "scraping":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return status


def _raw(client: Firecrawl, path: str) -> dict[str, object]:
    return client._v2_client.http_client.get(path).json()
