"""Keys, limits and idempotency over HTTP, on a server that has keys and a rate limit."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import requests
from firecrawl import Firecrawl
from firecrawl.v2.utils.error_handler import PaymentRequiredError, RateLimitError, UnauthorizedError

from tests.site.site import Site
from tests.support.cli import PROGRAM
from tests.support.serve_process import database_of_its_own, environment, serving

RATE = 60


@dataclass(frozen=True)
class Keyed:
    """A server with organisations of its own making."""

    url: str
    settings: dict[str, str]

    def organisation(self, *limits: str) -> str:
        """Make an organisation with these limits; return a key of it."""
        name = f"org-{uuid4().hex[:12]}"
        self._run("orgs", "create", name, *limits)
        return str(self._run("keys", "create", "ci", "--org", name)["key"])

    def _run(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [PROGRAM, *arguments, "--json"], env=self.settings, capture_output=True, check=True
        )
        return dict(json.loads(done.stdout))

    def post(self, key: str, path: str, body: object, **headers: str) -> requests.Response:
        bearer = {"Authorization": f"Bearer {key}"}
        return requests.post(self.url + path, json=body, headers=bearer | headers, timeout=60)


@pytest.fixture(scope="module")
def keyed(
    server_dsn: str, site_server: Site, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Keyed]:
    with database_of_its_own(server_dsn) as dsn:
        home = tmp_path_factory.mktemp("keyed")
        settings = environment(dsn, home, TRAPLINE_RATE_LIMIT=str(RATE), **site_server.env())
        with serving(settings) as (url, _):
            yield Keyed(url, settings)


def test_without_a_valid_key_nothing_is_answered(keyed: Keyed, site: Site) -> None:
    key = keyed.organisation()
    with pytest.raises(UnauthorizedError):
        Firecrawl(api_url=keyed.url, api_key="fc-wrong").scrape(site.at("/about/"))
    bare = requests.get(f"{keyed.url}/v2/team/queue-status", timeout=60)
    assert (bare.status_code, bare.json()["success"]) == (401, False)
    found = Firecrawl(api_url=keyed.url, api_key=key).scrape(site.at("/about/"))
    assert found.metadata.status_code == 200


def test_a_key_that_calls_too_often_is_told_how_long_to_wait(keyed: Keyed) -> None:
    key, other = keyed.organisation(), keyed.organisation()
    client = Firecrawl(api_url=keyed.url, api_key=key)
    for _ in range(RATE):
        client.get_concurrency()
    with pytest.raises(RateLimitError, match=r"retry after \d+s"):
        _insist(client)
    refused = keyed.post(key, "/v2/map", {"url": "http://a.test/"})
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert Firecrawl(api_url=keyed.url, api_key=other).get_concurrency().concurrency == 0


def test_pages_beyond_the_day_are_payment_required(keyed: Keyed, site: Site) -> None:
    client = Firecrawl(api_url=keyed.url, api_key=keyed.organisation("--max-pages-per-day", "2"))
    for path in ("/about/", "/contact/"):
        client.scrape(site.at(path), max_age=0)
    for refused in (
        lambda: client.scrape(site.at("/manual/battery.html"), max_age=0),
        lambda: client.start_crawl(site.at("/manual/")),
        lambda: client.start_batch_scrape([site.at("/manual/")]),
    ):
        with pytest.raises(PaymentRequiredError, match="pages of today"):
            refused()


def test_the_day_that_is_used_up_says_when_the_next_begins(keyed: Keyed, site: Site) -> None:
    key = keyed.organisation("--max-pages-per-day", "1")
    body = {"url": site.at("/about/"), "maxAge": 0}
    assert keyed.post(key, "/v2/scrape", body).status_code == 200
    refused = keyed.post(key, "/v2/scrape", body)
    assert refused.status_code == 402
    assert 1 <= int(refused.headers["Retry-After"]) <= 86_400


def test_what_is_beyond_the_concurrency_waits_its_turn(keyed: Keyed, site: Site) -> None:
    key = keyed.organisation("--max-concurrency", "1")
    client = Firecrawl(api_url=keyed.url, api_key=key)
    site.slow("/glossary/*", first_byte=0.5)
    urls = [site.at(f"/glossary/{word}/") for word in ("azimuth", "blaze", "col", "fix")]
    started = client.start_batch_scrape(urls, max_concurrency=4)
    most, waited, deadline = 0, 0, time.monotonic() + 60
    while (status := client.get_batch_scrape_status(started.id)).status == "scraping":
        queue = client.get_queue_status()
        most = max(most, queue.active_jobs_in_queue)
        waited = max(waited, queue.waiting_jobs_in_queue)
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert client.get_concurrency().max_concurrency == 1
    assert most == 1
    assert waited >= 2
    assert {page.metadata.source_url for page in status.data} == set(urls)


def test_an_idempotency_key_starts_one_job_of_each_organisation(keyed: Keyed, site: Site) -> None:
    body, again = {"url": site.at("/about/"), "limit": 1}, {"x-idempotency-key": str(uuid4())}
    key = keyed.organisation()
    first = keyed.post(key, "/v2/crawl", body, **again)
    second = keyed.post(key, "/v2/crawl", body, **again)
    assert (first.status_code, second.status_code) == (200, 409)
    assert second.json()["success"] is False
    assert keyed.post(keyed.organisation(), "/v2/crawl", body, **again).status_code == 200


def test_an_unknown_address_is_answered_as_firecrawl_does(served_site: str) -> None:
    for method, path in (("GET", "/v2/nothing"), ("POST", "/v1/nothing/at/all")):
        answer = requests.request(method, served_site + path, timeout=60)
        assert answer.status_code == 404
        assert answer.json() == {"success": False, "error": f"Cannot {method} {path}"}


def test_a_page_of_any_origin_may_ask_first(keyed: Keyed) -> None:
    asked = {"Origin": "https://app.test", "Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "authorization,content-type"
    answer = requests.options(f"{keyed.url}/v2/scrape", headers=asked, timeout=60)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    key = keyed.organisation()
    told = requests.get(
        f"{keyed.url}/v2/concurrency-check",
        headers={"Origin": "https://app.test", "Authorization": f"Bearer {key}"},
        timeout=60,
    )
    assert (told.status_code, told.headers["Access-Control-Allow-Origin"]) == (200, "*")


def _insist(client: Firecrawl) -> None:
    for _ in range(RATE):
        client.get_concurrency()
