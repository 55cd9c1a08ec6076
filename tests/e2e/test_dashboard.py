"""The dashboard in Chromium: paste a URL, watch the crawl, open a page; strangers' script never runs."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.site.site import Site
from tests.support import debian

PATIENCE = 90_000
ATTACK = "<script>fetch('/ran-by-a-stranger')</script><img src=x onerror=\"fetch('/ran-by-a-stranger')\">"
HOSTILE = f"""<!doctype html><html><head><title>{ATTACK} \u202etitle</title>
<script>fetch('/ran-by-a-stranger')</script></head><body onload="fetch('/ran-by-a-stranger')">
<main><h1>{ATTACK} Heading</h1><p>Enough words that this page is read as an article: &lt;script&gt;
fetch('/ran-by-a-stranger')&lt;/script&gt; and a <a href="javascript:fetch('/ran-by-a-stranger')">link</a>.</p>
<img src="/asked-by-a-capture.png"></main></body></html>"""


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    debian.require("chromium-headless-shell")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path="/usr/bin/chromium-headless-shell", args=["--no-sandbox"]
        )
        opened = await browser.new_page()
        opened.set_default_timeout(PATIENCE)
        yield opened
        await browser.close()


async def crawl(page: Page, served: str, url: str) -> None:
    """Paste a URL with the keyboard and wait until its crawl has ended."""
    await page.goto(served)
    await page.keyboard.press("/")
    await page.keyboard.type(url)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/jobs/*")
    await expect(page.locator("#progress .badge")).to_have_text("completed", timeout=PATIENCE)


async def test_paste_a_url_watch_the_crawl_and_open_a_page(
    page: Page, served_site: str, site: Site
) -> None:
    await crawl(page, served_site, site.at("/journal/"))
    await expect(page.locator("#pages tbody tr").first).to_be_visible()
    await page.locator("#pages tbody a").first.press("Enter")
    await page.wait_for_url("**/pages/*")
    await expect(page.get_by_label("Content")).not_to_be_empty()


async def test_script_of_a_crawled_page_never_runs_and_its_capture_asks_for_nothing(
    page: Page, served_site: str, site: Site
) -> None:
    site.change("/hostile-title/", body=HOSTILE.encode(), status=200)
    requests: list[str] = []
    answers: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("response", lambda response: answers.append(response.url))
    await crawl(page, served_site, site.at("/hostile-title/"))
    job = page.url
    await page.locator("#pages tbody a").first.click()
    await page.wait_for_url("**/pages/*")
    here = page.url
    for view in (f"{here}?tab=links", f"{here}?tab=metadata", f"{served_site}/pages", f"{job}/log"):
        await page.goto(view)
    await page.goto(f"{here}?tab=capture", wait_until="load")
    await expect(page.frame_locator("iframe.capture").locator("h1").first).to_be_visible()
    assert any(url.endswith("/capture") for url in answers)
    # The browser reports what the policy blocks as a request that gets no answer.
    assert [url for url in answers if "asked-by" in url] == []
    assert [url for url in requests if "stranger" in url] == []
    assert {url.split("/")[2] for url in requests} == {served_site.split("/")[2]}
