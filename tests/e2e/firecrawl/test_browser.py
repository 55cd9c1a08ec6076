"""Screenshots, actions and script-made pages, driven by firecrawl-py and the command line."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.types import ScreenshotFormat
from firecrawl.v2.utils.error_handler import FirecrawlError

from tests.support.cli import PROGRAM
from tests.support.script_site import ScriptSite, require_browser
from tests.support.serve_process import database_of_its_own, environment, serving

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def script_site() -> Iterator[ScriptSite]:
    require_browser()
    with ScriptSite().running_in_thread() as running:
        yield running


@pytest.fixture(scope="module")
def settings(server_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with database_of_its_own(server_dsn) as dsn:
        home = tmp_path_factory.mktemp("browser")
        yield environment(dsn, home, TRAPLINE_ALLOW_NETS="127.0.0.1/32")


@pytest.fixture(scope="module")
def client(settings: dict[str, str], script_site: ScriptSite) -> Iterator[Firecrawl]:
    with serving(settings) as (url, _):
        yield Firecrawl(api_url=url, api_key="fc-anything")


def decoded(uri: str | None, kind: str) -> bytes:
    assert uri is not None
    start = f"data:{kind};base64,"
    assert uri.startswith(start)
    return base64.b64decode(uri.removeprefix(start))


def test_a_page_made_by_scripts_is_rendered_by_itself(
    client: Firecrawl, script_site: ScriptSite
) -> None:
    page = client.scrape(f"{script_site.url}/fetched", max_age=0)
    assert "fetched data" in (page.markdown or "")
    assert page.metadata is not None
    assert page.metadata.model_extra["renderedBy"] == "browser"
    assert "words without scripts" in page.metadata.model_extra["renderedBecause"]


def test_a_static_page_needs_no_browser(client: Firecrawl, script_site: ScriptSite) -> None:
    page = client.scrape(f"{script_site.url}/static", max_age=0)
    assert "All of it is in the source" in (page.markdown or "")
    assert page.metadata is not None
    assert "renderedBy" not in (page.metadata.model_extra or {})


def test_a_screenshot(client: Firecrawl, script_site: ScriptSite) -> None:
    page = client.scrape(f"{script_site.url}/fetched", formats=["markdown", "screenshot"])
    assert decoded(page.screenshot, "image/png").startswith(PNG)
    assert "fetched data" in (page.markdown or "")
    assert page.actions is not None
    assert page.actions["screenshots"] == []


def test_a_screenshot_of_the_whole_page_as_jpeg(client: Firecrawl, script_site: ScriptSite) -> None:
    page = client.scrape(
        f"{script_site.url}/long",
        formats=[ScreenshotFormat(type="screenshot", full_page=True, quality=30)],
    )
    assert decoded(page.screenshot, "image/jpeg")
    assert "30,000 of 100,0" in (page.warning or "")


def test_actions_in_their_order(client: Firecrawl, script_site: ScriptSite) -> None:
    page = client.scrape(
        f"{script_site.url}/form",
        formats=["markdown"],
        actions=[
            {"type": "click", "selector": "#box"},
            {"type": "write", "text": "hello"},
            {"type": "press", "key": "Enter"},
            {"type": "click", "selector": ".add"},
            {"type": "click", "selector": "#late"},
            {"type": "wait", "selector": ".late"},
            {"type": "executeJavascript", "script": "document.querySelectorAll('li').length"},
            {"type": "screenshot", "full_page": True},
            {"type": "scrape"},
            {"type": "pdf"},
        ],
    )
    assert "sent hello" in (page.markdown or "")
    actions = page.actions
    assert actions is not None
    assert actions["javascriptReturns"] == [{"type": "number", "value": 1}]
    assert decoded(actions["screenshots"][0], "image/png").startswith(PNG)
    assert decoded(actions["pdfs"][0], "application/pdf").startswith(b"%PDF")
    assert actions["scrapes"][0]["url"] == f"{script_site.url}/form"
    assert 'class="late"' in actions["scrapes"][0]["html"]


def test_a_failed_action_returns_what_was_done(client: Firecrawl, script_site: ScriptSite) -> None:
    with pytest.raises(FirecrawlError, match=r"Action\(s\) failed to complete") as failed:
        client.scrape(
            f"{script_site.url}/form",
            actions=[
                {"type": "executeJavascript", "script": "1 + 1"},
                {"type": "click", "selector": "#nothing"},
            ],
        )
    assert "#nothing" in str(failed.value)
    response = failed.value.response
    assert response is not None
    body = response.json()
    assert body["code"] == "SCRAPE_ACTION_ERROR"
    assert body["details"]["actions"]["javascriptReturns"] == [{"type": "number", "value": 2}]


def test_the_command_line_writes_files(
    settings: dict[str, str], script_site: ScriptSite, tmp_path: Path
) -> None:
    actions = tmp_path / "actions.json"
    actions.write_text(json.dumps([{"type": "click", "selector": ".add", "all": True}]))
    picture, pdf = tmp_path / "page.png", tmp_path / "page.pdf"
    files = ["--screenshot", str(picture), "--pdf", str(pdf), "--actions", str(actions)]
    command = [PROGRAM, "scrape", f"{script_site.url}/form", "--json", *files]
    done = subprocess.run(command, env=settings, capture_output=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
    assert picture.read_bytes().startswith(PNG)
    assert pdf.read_bytes().startswith(b"%PDF")
    assert json.loads(done.stdout)["rendering"]["reason"] == "actions"


def test_without_a_browser_the_command_that_installs_one_is_named(
    settings: dict[str, str], script_site: ScriptSite
) -> None:
    missing = settings | {"TRAPLINE_BROWSER": os.devnull + "/none"}
    command = [PROGRAM, "scrape", f"{script_site.url}/static", "--browser"]
    done = subprocess.run(command, env=missing, capture_output=True, check=False, timeout=200)
    assert done.returncode == 1
    assert b"TRAPLINE_BROWSER names /dev/null/none" in done.stderr
    plain = [PROGRAM, "scrape", f"{script_site.url}/static"]
    done = subprocess.run(plain, env=missing, capture_output=True, check=False, timeout=200)
    assert b"All of it is in the source." in done.stdout
