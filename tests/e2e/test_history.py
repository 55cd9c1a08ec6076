"""A site that is crawled five times while it changes: what is told is exactly what happened."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

import aiohttp
import pytest

from tests.site.site import Site
from tests.support.http_api import Served
from tests.support.scraper import site_settings
from trapline import app
from trapline.db.pool import Database
from trapline.pipeline import after_job
from trapline.settings import Settings

ATOM = "{http://www.w3.org/2005/Atom}"
_PROSE = (
    "The {0} stands on a granite shelf above the tide line and has kept its log since the year "
    "the lamp was electrified. Every evening the keeper writes down the wind, the height of the "
    "water and the birds that rested on the rail. Visitors may read the pages but not touch them. "
    "The store beside it holds rope, paraffin, blankets and a bell that is rung in fog. {1}"
)


@dataclass
class Lab:
    """A corner of the site whose pages a test writes itself."""

    site: Site
    links: list[str] = field(default_factory=lambda: ["a", "b", "c", "d"])

    def write(self, name: str, extra: str = "", noise: str = "") -> None:
        body = _PROSE.format(f"lighthouse {name} of the {name * 3} coast", extra)
        self._put(f"/lab/{name}/", f"Station {name}", f"<p>{body}</p><p>{noise}</p>")

    def index(self, *links: str) -> None:
        items = "".join(f'<li><a href="/lab/{name}/">Station {name}</a></li>' for name in links)
        body = _PROSE.format("index of stations", f"It lists {len(links)} stations.")
        self._put("/lab/", "Stations", f"<p>{body}</p><ul>{items}</ul>")

    def _put(self, target: str, title: str, content: str) -> None:
        page = (
            f"<!doctype html><html lang=en><title>{title}</title><body><main><article>"
            f"<h1>{title}</h1>{content}</article></main></body></html>"
        )
        self.site.change(
            target,
            status=200,
            body=page.encode(),
            content_type="text/html; charset=utf-8",
            validators=frozenset({"etag"}),
        )


@dataclass
class Watched:
    """The site as Trapline's own API shows it."""

    api: aiohttp.ClientSession
    database: Database
    site: Site
    id: str = ""
    seen: int = 0

    async def get(self, path: str, **query: Any) -> Any:
        async with self.api.get(path, params=query) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def post(self, path: str, body: Any = None, status: int = 202) -> Any:
        async with self.api.post(path, json=body) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def crawl(self) -> tuple[dict[str, str], dict[str, str], set[str]]:
        """Crawl; return what changed by path, what the job says by path, and what got a 304."""
        self.site.log.clear()
        job = (await self.post(f"/api/sites/{self.id}/crawl"))["job_id"]
        async with asyncio.timeout(60):
            while not await self._was_swept(job):
                await asyncio.sleep(0.05)
                await after_job.catch_up(self.database)
        changes = await self.get("/api/changes", site_id=self.id, limit="1000")
        new = [change for change in changes["items"] if change["id"] > self.seen]
        self.seen = max((change["id"] for change in changes["items"]), default=0)
        assert len({change["url"] for change in new}) == len(new)
        pages = (await self.get(f"/api/pages/of-job/{job}"))["items"]
        return (
            {self.path(change["url"]): change["status"] for change in new},
            {self.path(page["url"]): page["change"] for page in pages},
            {entry.path for entry in self.site.log if entry.status == 304},
        )

    async def _was_swept(self, job: str) -> bool:
        """Tell whether a crawl has ended, was whole, and was compared with the one before."""
        async with self.database.system_tx() as conn:
            return bool(
                await conn.fetchval("SELECT count(*) FROM store.sweep WHERE job_id = $1", job)
            )

    def path(self, url: str) -> str:
        return "/" + url.removeprefix(self.site.url)


@pytest.fixture
async def watched(
    database: Database, site: Site, served: Served, server_settings: Settings
) -> AsyncIterator[Watched]:
    settings = site_settings(server_settings, site)
    async with served(settings) as api, app.run_worker(database, settings):
        yield Watched(api, database, site)


async def test_five_crawls_of_a_changing_site(watched: Watched, site: Site) -> None:
    lab = Lab(site)
    for name in "abcd":
        lab.write(name, noise=f"Updated at 10:0{ord(name) % 10}")
    lab.index("a", "b", "c", "d")
    created = await watched.post(
        "/api/sites",
        {
            "name": "lab",
            "base_url": f"{site.url}lab/",
            "config": {"sitemap": "skip", "delay": 0, "ignore_patterns": ["^Updated at"]},
        },
        status=201,
    )
    watched.id = created["id"]
    everything = {"/lab/", "/lab/a/", "/lab/b/", "/lab/c/", "/lab/d/"}

    # The first crawl: everything is new.
    changes, pages, unmodified = await watched.crawl()
    assert changes == dict.fromkeys(everything, "new")
    assert pages == changes
    assert unmodified == set()

    # The second: nothing happened, and the server says so.
    changes, pages, unmodified = await watched.crawl()
    assert changes == {}
    assert pages == dict.fromkeys(everything, "same")
    assert unmodified == everything

    # The third: a is rewritten, c is gone for good, e is new and on the index.
    lab.write("a", "Since last week it has a second bell.", noise="Updated at 11:00")
    site.remove("/lab/c/", status=410)
    lab.write("e")
    lab.index("a", "b", "c", "d", "e")
    changes, pages, unmodified = await watched.crawl()
    assert changes == {
        "/lab/": "changed",
        "/lab/a/": "changed",
        "/lab/c/": "removed",
        "/lab/e/": "new",
    }
    assert pages == {
        "/lab/": "changed",
        "/lab/a/": "changed",
        "/lab/b/": "same",
        "/lab/d/": "same",
        "/lab/e/": "new",
    }
    assert unmodified == {"/lab/b/", "/lab/d/"}

    # The fourth: d is no longer linked though it is there, and of b only noise changed.
    lab.index("a", "b", "c", "e")
    lab.write("b", noise="Updated at 23:59")
    changes, pages, unmodified = await watched.crawl()
    assert changes == {"/lab/": "changed", "/lab/d/": "removed"}
    assert unmodified == {"/lab/a/", "/lab/e/"}
    assert pages == {
        "/lab/": "changed",
        "/lab/a/": "same",
        "/lab/b/": "same",
        "/lab/e/": "same",
    }

    # The fifth: c is back with its old text, and d is linked again.
    lab.write("c", noise="Updated at 10:09")
    lab.index("a", "b", "c", "d", "e")
    changes, pages, unmodified = await watched.crawl()
    assert changes == {"/lab/": "changed", "/lab/c/": "new", "/lab/d/": "new"}
    assert unmodified == everything - {"/lab/"} | {"/lab/e/"}
    await _check_versions(watched)
    await _check_feeds(watched)


async def _check_versions(watched: Watched) -> None:
    """Three versions of the index after the first; one more of a; one of everything else."""
    listed = (await watched.get("/api/pages", site_id=watched.id))["items"]
    by_path = {watched.path(page["url"]): page for page in listed}
    assert {path: page["version"] for path, page in by_path.items()} == {
        "/lab/": 4,
        "/lab/a/": 2,
        "/lab/b/": 1,
        "/lab/c/": 1,
        "/lab/d/": 1,
        "/lab/e/": 1,
    }
    assert all(page["gone_at"] is None for page in listed)
    rewritten = by_path["/lab/a/"]
    diff = await watched.get(f"/api/pages/{rewritten['id']}/diff")
    assert diff["changed"]
    assert "+" in diff["text"]
    assert "second bell" in diff["text"]
    # Lines of noise are no part of the difference.
    assert "Updated at" not in diff["text"]
    assert diff["summary"] == "1 line added, 1 removed."
    (change,) = [
        item
        for item in (
            await watched.get("/api/changes", site_id=watched.id, page_id=rewritten["id"])
        )["items"]
        if item["status"] == "changed"
    ]
    assert change["summary"] == diff["summary"]
    same = await watched.get(f"/api/changes/{change['id']}/diff")
    assert same["text"] == diff["text"]
    first = await watched.get(f"/api/pages/{rewritten['id']}/versions/1")
    at_first = await watched.get(f"/api/pages/{rewritten['id']}/at", time=first["fetched_at"])
    assert at_first["number"] == 1
    assert "second bell" not in at_first["markdown"]


async def _check_feeds(watched: Watched) -> None:
    """Both feeds tell the same as the list, in the same order."""
    listed = (await watched.get("/api/changes", site_id=watched.id))["items"]
    async with watched.api.get("/api/changes/feed.json", params={"site_id": watched.id}) as answer:
        feed = await answer.json(content_type="application/feed+json")
    assert [item["url"] for item in feed["items"]] == [change["url"] for change in listed]
    async with watched.api.get("/api/changes/feed.atom", params={"site_id": watched.id}) as answer:
        assert answer.content_type == "application/atom+xml"
        atom = ET.fromstring(await answer.read())  # noqa: S314 (our own answer)
    entries = atom.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}summary") for entry in entries] == [
        change["summary"] for change in listed
    ]
