"""What jobs over Firecrawl's API tell beside their pages: changes, their log, when they were asked for."""

import json
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import requests
from websockets.sync.client import connect

from tests.site.site import Site

TRACKED = {"type": "changeTracking", "modes": ["git-diff"]}


def _post(served_site: str, path: str, **body: Any) -> dict[str, Any]:
    answer = requests.post(f"{served_site}{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _ended(url: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while (body := requests.get(url, timeout=60).json())["status"] == "scraping":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return dict(body)


def _batch(served_site: str, urls: list[str], **format_: Any) -> dict[str, Any]:
    """Visit pages; return what became of each since its last scrape."""
    formats = ["markdown", TRACKED | format_]
    started = _post(served_site, "/v2/batch/scrape", urls=urls, formats=formats)
    done = _ended(started["url"])
    return {page["metadata"]["sourceURL"]: page["changeTracking"] for page in done["data"]}


def test_bad_wishes_are_refused(served_site: str, site: Site) -> None:
    for wrong in (
        {"formats": [TRACKED]},
        {"formats": ["markdown", TRACKED | {"modes": ["words"]}]},
        {"formats": ["markdown", TRACKED | {"tag": "x" * 201}]},
    ):
        for path, body in (
            ("/v2/batch/scrape", {"urls": [site.url]} | wrong),
            ("/v2/crawl", {"url": site.url, "scrapeOptions": wrong}),
        ):
            answer = requests.post(f"{served_site}{path}", json=body, timeout=60)
            assert answer.status_code == 400, (path, body)


def test_changes_are_tracked_in_a_batch_by_tag(served_site: str, site: Site) -> None:
    kept, edited = site.at("/contact/"), site.at("/about/")
    tag = str(uuid4())
    first = _batch(served_site, [kept, edited], tag=tag)
    assert {url: (t["changeStatus"], t["previousScrapeAt"]) for url, t in first.items()} == {
        kept: ("new", None),
        edited: ("new", None),
    }
    site.edit("/about/", "eleven", "seventeen")
    second = _batch(served_site, [kept, edited], tag=tag)
    assert second[kept]["changeStatus"] == "same"
    assert "diff" not in second[kept]
    assert second[edited]["changeStatus"] == "changed"
    assert "seventeen" in second[edited]["diff"]["text"]
    assert second[edited]["diff"]["json"]["files"]
    asked = datetime.fromisoformat(second[edited]["previousScrapeAt"])
    assert (datetime.now(UTC) - asked).total_seconds() < 600
    # Another tag has a history of its own, and a single scrape of this one goes on with it.
    other = _batch(served_site, [edited], tag=str(uuid4()))
    assert other[edited]["changeStatus"] == "new"
    formats = ["markdown", TRACKED | {"tag": tag}]
    scraped = _post(served_site, "/v2/scrape", url=edited, formats=formats, maxAge=0)
    assert scraped["data"]["changeTracking"]["changeStatus"] == "same"


def test_changes_are_tracked_in_a_crawl(served_site: str, site: Site) -> None:
    options = {"formats": ["markdown", TRACKED | {"tag": str(uuid4())}]}
    body = {"url": site.at("/about/"), "limit": 1, "sitemap": "skip", "scrapeOptions": options}
    words = []
    for word in ("eleven", "nineteen"):
        done = _ended(_post(served_site, "/v2/crawl", **body)["url"])
        words.append(done["data"][0]["changeTracking"]["changeStatus"])
        site.edit("/about/", word, "nineteen")
    assert words == ["new", "changed"]


@pytest.mark.parametrize("path", ["/v2/crawl", "/v2/batch/scrape", "/v2/scrape"])
def test_it_is_kept_when_a_client_asked(served_site: str, site: Site, path: str) -> None:
    url, began = site.at("/contact/"), datetime.now(UTC)
    body: dict[str, Any] = {"url": url, "limit": 1, "sitemap": "skip"}
    if path != "/v2/crawl":
        body = {"urls": [url]} if "batch" in path else {"url": url, "maxAge": 0}
    told = _post(served_site, path, **body)
    job_id = told.get("id") or told["data"]["metadata"]["scrapeId"]
    job = requests.get(f"{served_site}/api/jobs/{job_id}", timeout=60).json()
    asked = datetime.fromisoformat(job["metadata"]["initiated_at"])
    assert began <= asked <= datetime.fromisoformat(job["created_at"])
    if "url" in told:
        _ended(told["url"])


def test_the_log_is_streamed_to_who_wants_it(served_site: str, site: Site) -> None:
    body = {"url": site.at("/events/"), "limit": 3, "sitemap": "skip", "maxConcurrency": 4}
    started = _post(served_site, "/v2/crawl", **body)
    events = f"{served_site}/api/jobs/{started['id']}/events"
    assert requests.get(f"{events}?log=LOUD", timeout=60).status_code == 400
    whole = _stream(f"{events}?log=DEBUG")
    kinds = [kind for kind, _, _ in whole]
    assert kinds.count("log") >= 2
    assert all(number is None for kind, number, _ in whole if kind == "log")
    assert {"at", "level", "step", "message", "context"} == set(whole[kinds.index("log")][2])
    # Who comes back after an event gets neither it nor the lines before it again, and all others.
    numbered = [place for place, (_, number, _) in enumerate(whole) if number is not None]
    cut = numbered[2]
    rest = _stream(f"{events}?log=DEBUG&after={whole[cut][1]}")
    lines = [data for kind, _, data in whole[cut + 1 :] if kind == "log"]
    assert [data for kind, _, data in rest if kind == "log"] == lines
    assert not [kind for kind, _, _ in _stream(events) if kind == "log"]


def test_a_watcher_gets_the_log_only_if_it_asks(served_site: str, site: Site) -> None:
    body = {"url": site.at("/events/"), "limit": 3, "sitemap": "skip", "delay": 0.2}
    started = _post(served_site, "/v2/crawl", **body)
    socket = f"{served_site.replace('http', 'ws')}/v2/crawl/{started['id']}"
    with connect(f"{socket}?log=LOUD") as refused, pytest.raises(Exception, match="1008"):
        refused.recv(timeout=60)
    with connect(f"{socket}?log=DEBUG") as asking, connect(socket) as plain:
        heard = [[json.loads(text)["type"] for text in each] for each in (asking, plain)]
    assert "log" in heard[0]
    assert "log" not in heard[1]
    assert heard[0][-1] == heard[1][-1] == "done"


def _stream(url: str) -> list[tuple[str, int | None, dict[str, Any]]]:
    """Read server-sent events until the end: type, number and data of each."""
    found = []
    with requests.get(url, stream=True, timeout=120) as answer:
        assert answer.status_code == 200, answer.text
        for block in answer.text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "data" in fields:
                number = None if "id" not in fields else int(fields["id"])
                found.append((fields["event"], number, json.loads(fields["data"])))
    return found
