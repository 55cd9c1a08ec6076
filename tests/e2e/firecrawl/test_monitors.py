"""Monitors through firecrawl-py: looks at pages, and what became of them since the last look."""

import time
from typing import Any
from uuid import uuid4

import pytest
from firecrawl import Firecrawl
from firecrawl.v2.types import MonitorCheckDetail
from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError

from tests.site.site import Site


@pytest.fixture
def client(served_site: str) -> Firecrawl:
    return Firecrawl(api_url=served_site, api_key="fc-anything")


def test_looks_tell_what_is_new_same_changed_and_removed(client: Firecrawl, site: Site) -> None:
    kept, edited, lost = site.at("/contact/"), site.at("/about/"), site.at("/thin/2/")
    monitor = _created(client, [{"type": "scrape", "urls": [kept, edited, lost]}])
    assert monitor.schedule.cron == "*/30 * * * *"
    assert monitor.next_run_at
    first = _looked(client, monitor.id)
    assert first.trigger == "manual"
    assert first.summary.total_pages == 3
    second = _looked(client, monitor.id)
    assert (second.summary.same, second.summary.total_pages) == (3, 3)
    site.edit("/about/", "eleven", "thirteen")
    site.fail("/thin/2/", status=410)
    third = _looked(client, monitor.id)
    assert {page.url: page.status for page in third.pages} == {
        kept: "same",
        edited: "changed",
        lost: "removed",
    }
    changed = next(page for page in third.pages if page.url == edited)
    assert changed.diff is not None
    assert "thirteen" in (changed.diff.text or "")
    assert changed.target_id == "target-1"
    only = client.get_monitor_check(monitor.id, third.id, status="changed")
    assert [page.url for page in only.pages] == [edited]
    assert [check.id for check in client.list_monitor_checks(monitor.id)] == [
        third.id,
        second.id,
        first.id,
    ]
    assert client.get_monitor(monitor.id).last_check_summary.changed == 1
    client.delete_monitor(monitor.id)


def test_a_crawl_is_watched_and_its_pages_are_paged(client: Firecrawl, site: Site) -> None:
    target = {
        "type": "crawl",
        "url": site.at("/manual/"),
        "crawlOptions": {"limit": 5, "sitemap": "skip"},
    }
    monitor = _created(client, [target])
    look = _looked(client, monitor.id)
    assert look.status == "completed"
    assert look.summary.total_pages == len(look.pages) == 5
    paged = client.get_monitor_check(monitor.id, look.id, limit=2)
    assert len({page.id for page in paged.pages}) == 5
    client.delete_monitor(monitor.id)


def test_a_monitor_is_changed_paused_listed_and_deleted(client: Firecrawl, site: Site) -> None:
    monitor = _created(client, [{"type": "scrape", "urls": [site.at("/about/")]}])
    changed = client.update_monitor(
        monitor.id,
        name=f"renamed {monitor.id}",
        status="paused",
        schedule={"text": "daily at 9:00", "timezone": "Europe/Berlin"},
    )
    assert changed.status == "paused"
    assert changed.schedule.cron == "0 9 * * *"
    assert changed.next_run_at is None
    assert monitor.id in {found.id for found in client.list_monitors()}
    assert client.update_monitor(monitor.id, status="active").next_run_at
    assert client.delete_monitor(monitor.id) is True
    with pytest.raises(FirecrawlError, match="not found"):
        client.get_monitor(monitor.id)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"schedule": {"text": "when it rains"}}, "not understood"),
        ({"schedule": {"cron": "61 * * * *"}}, "cron"),
        ({"targets": [{"type": "search", "queries": ["x"]}]}, "search"),
        ({"targets": [{"type": "crawl"}]}, "needs `url`"),
        ({"targets": [{"type": "crawl", "url": "http://a.test", "crawlOptions": {"x": 1}}]}, "Bad"),
        ({"webhook": {"url": "http://a.test/"}}, "webhook"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    client: Firecrawl, fields: dict[str, Any], words: str
) -> None:
    body = {
        "name": "no",
        "schedule": {"cron": "0 0 * * *"},
        "targets": [{"type": "scrape", "urls": ["http://a.test/"]}],
    }
    with pytest.raises(BadRequestError, match=words):
        client.create_monitor(**(body | fields))


def _created(client: Firecrawl, targets: list[dict[str, Any]]) -> Any:
    return client.create_monitor(
        name=f"watch {uuid4()}", schedule={"text": "every 30 minutes"}, targets=targets
    )


def _looked(client: Firecrawl, monitor_id: str) -> MonitorCheckDetail:
    check = client.run_monitor(monitor_id)
    deadline = time.monotonic() + 60
    while (found := client.get_monitor_check(monitor_id, check.id)).status in {"queued", "running"}:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found
