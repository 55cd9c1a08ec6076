"""`trapline scrape` and `trapline map` against the test site."""

import json

import pytest

from tests.site.site import Site
from tests.support.cli import Trapline


@pytest.fixture
def crawler(trapline: Trapline, site: Site) -> Trapline:
    return Trapline(trapline.environment | site.env(), trapline.directory)


async def test_scrape_prints_what_is_asked_for(crawler: Trapline, site: Site) -> None:
    markdown = await crawler("scrape", site.at("/about/"))
    assert markdown.status == 0, markdown.err
    assert "founded in 1921" in markdown.out
    links = await crawler("scrape", site.at("/about/"), "--format", "links")
    assert site.at("/journal/") in links.out.splitlines()
    both = await crawler(
        "scrape",
        site.at("/about/"),
        "--format",
        "html",
        "--format",
        "rawHtml",
        "--out",
        "page.json",
    )
    assert both.out == ""
    page = json.loads((crawler.directory / "page.json").read_text())
    assert page["document"]["html"]
    assert page["document"]["raw_html"].lower().startswith("<!doctype html>")
    assert (page["status"], page["cache"]) == (200, "miss")


async def test_scrape_says_what_went_wrong(crawler: Trapline, site: Site) -> None:
    missing = await crawler("scrape", site.at("/no-such-page"))
    assert missing.status == 1
    assert "no such page" in missing.err
    assert missing.out == ""
    site.slow("/about/", first_byte=20)
    late = await crawler("scrape", site.at("/about/"), "--timeout", "1", "--json")
    assert late.status == 1
    assert late.json["code"] == 25
    for wrong in (("--header", "no colon"), ("--include-tag", "p["), ("--timeout", "-1")):
        refused = await crawler("scrape", site.at("/about/"), *wrong)
        assert refused.status == 2, wrong
        assert "Traceback" not in refused.err


async def test_map_finds_sitemaps_links_and_what_is_known(crawler: Trapline, site: Site) -> None:
    done = await crawler("map", site.url, "--json")
    assert done.status == 0, done.err
    urls = [link["url"] for link in done.json["links"]]
    assert len(urls) == len(set(urls))
    assert any("/attic/" in url for url in urls)  # only the sitemap knows it
    assert any(url.endswith("/about/") for url in urls)
    assert not [url for url in urls if "?" in url]
    # One request for the page and a few for robots.txt and sitemaps: no page is visited.
    assert set(site.log.pages()) <= {site.url}
    few = await crawler("map", site.url, "--limit", "3")
    assert len(few.out.splitlines()) == 3
    found = await crawler("map", site.url, "--search", "about")
    assert found.out.splitlines()[0].endswith("/about/")
    linked = await crawler("map", site.url, "--sitemap", "skip")
    assert not [url for url in linked.out.splitlines() if "/attic/" in url]
