"""Monitors through firecrawl-py: looks at pages, and what became of them since the last look."""

import time
from typing import Any
from uuid import uuid4

import pytest
import requests
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


PATHS = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/run"),
    ("GET", "/checks"),
    ("GET", "/checks/1"),
]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_what_is_no_monitor_is_told_so(served_site: str, method: str, path: str) -> None:
    for monitor, status in (("x", 400), (str(uuid4()), 404)):
        url = f"{served_site}/v2/monitor/{monitor}{path}"
        answer = requests.request(method, url, json={}, timeout=60)
        assert answer.status_code == status, (url, answer.text)
        assert answer.json()["success"] is False


def test_bad_pages_of_lists_are_refused(served_site: str, client: Firecrawl, site: Site) -> None:
    monitor = _created(client, [{"type": "scrape", "urls": [site.at("/about/")]}])
    base = f"{served_site}/v2/monitor"
    look = _looked(client, monitor.id)
    for path, status in (
        ("?limit=0", 400),
        ("?limit=101", 400),
        ("?offset=-1", 400),
        (f"/{monitor.id}/checks?limit=x", 400),
        (f"/{monitor.id}/checks/{look.id}?skip=-1", 400),
        (f"/{monitor.id}/checks/{look.id}?after=2-1", 400),
        (f"/{monitor.id}/checks/{look.id}?after=1", 400),
        (f"/{monitor.id}/checks/{look.id}?status=odd", 400),
        (f"/{monitor.id}/checks/0", 404),
        (f"/{monitor.id}/checks/-1", 404),
        (f"/{monitor.id}/checks/{'9' * 30}", 404),
    ):
        assert requests.get(f"{base}{path}", timeout=60).status_code == status, path
    client.delete_monitor(monitor.id)


def test_lists_of_monitors_and_looks_are_paged(
    served_site: str, client: Firecrawl, site: Site
) -> None:
    monitors = [
        _created(client, [{"type": "scrape", "urls": [site.at("/about/")]}]) for _ in range(3)
    ]
    base = f"{served_site}/v2/monitor"
    newest = requests.get(f"{base}?limit=2", timeout=60).json()["data"]
    after = requests.get(f"{base}?limit=1&offset=2", timeout=60).json()["data"]
    assert [found["id"] for found in (*newest, *after)] == [m.id for m in monitors[::-1]]
    looks = [_looked(client, monitors[0].id).id for _ in range(3)]
    checks = f"{base}/{monitors[0].id}/checks"
    two = requests.get(f"{checks}?limit=2", timeout=60).json()["data"]
    last = requests.get(f"{checks}?offset=2", timeout=60).json()["data"]
    assert [check["id"] for check in (*two, *last)] == looks[::-1]
    for monitor in monitors:
        client.delete_monitor(monitor.id)


def test_one_look_at_a_time_and_one_monitor_of_a_name(
    served_site: str, client: Firecrawl, site: Site
) -> None:
    target = {"type": "crawl", "url": site.url, "crawlOptions": {"limit": 50, "delay": 2}}
    monitor = _created(client, [target])
    started = client.run_monitor(monitor.id)
    again = requests.post(f"{served_site}/v2/monitor/{monitor.id}/run", json={}, timeout=60)
    assert again.status_code == 409, again.text
    assert client.get_monitor(monitor.id).current_check_id == started.id
    body = {"name": monitor.name, "schedule": {"cron": "0 0 * * *"}, "targets": [target]}
    twin = requests.post(f"{served_site}/v2/monitor", json=body, timeout=60)
    assert twin.status_code == 409, twin.text
    client.delete_monitor(monitor.id)
    # The look goes on without its monitor; nobody else wants its visits in the site's log.
    for crawl in client.get_active_crawls().crawls:
        client.cancel_crawl(crawl.id)
