"""A job's events as they happen: gapless, resumable, over when the job is."""

import json
from typing import Any
from uuid import uuid4

import requests

from tests.site.site import Site


def stream(url: str, **parts: Any) -> list[dict[str, Any]]:
    """Read server-sent events until the server ends the stream."""
    with requests.get(url, stream=True, timeout=60, **parts) as answer:
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line.decode() for line in answer.iter_lines()]
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    ids = [int(line[4:]) for line in lines if line.startswith("id: ")]
    assert ids == [event["number"] for event in events]
    return events


def start(served_site: str, site: Site) -> str:
    body = {"url": site.at("/events/"), "limit": 4, "sitemap": "skip", "maxConcurrency": 4}
    answer = requests.post(f"{served_site}/v2/crawl", json=body, timeout=30)
    return f"{served_site}/api/jobs/{answer.json()['id']}/events"


def test_every_event_is_streamed_and_a_client_that_comes_back_misses_none(
    served_site: str, site: Site
) -> None:
    url = start(served_site, site)
    whole = stream(url)
    assert [event["number"] for event in whole] == list(range(1, len(whole) + 1))
    assert whole[0]["type"] == "job.started"
    assert whole[-1]["type"] == "job.completed"
    assert [event["type"] for event in whole].count("page") == 4
    assert stream(url, params={"after": 2}) == whole[2:]
    assert stream(url, headers={"Last-Event-ID": "3"}) == whole[3:]


def test_what_is_no_job_or_no_number_is_an_error(served_site: str, site: Site) -> None:
    unknown = requests.get(f"{served_site}/api/jobs/{uuid4()}/events", timeout=30)
    assert unknown.status_code == 404
    url = start(served_site, site)
    bad = requests.get(url, headers={"Last-Event-ID": "-1"}, timeout=30)
    assert bad.status_code == 400
