"""Every recorded page is scraped and crawled through the API, and ends as it was recorded."""

import hashlib
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

import asyncpg
import httpx
import pytest

from tests.replay.recordings import Recording
from tests.replay.server import ReplayServer
from tests.support.serve_process import database_of_its_own, environment, serving
from trapline.errors import ExitCode
from trapline.fetch.outcome import REDIRECTS
from trapline.frontier.canonical_url import canonical

_SECONDS = 300
_VISITS = """
SELECT CASE WHEN u.secure THEN 'https' ELSE 'http' END || '://' || h.name || u.path AS url,
       v.exit_code, v.message, r.status, f.sha256
FROM archive.visit v
JOIN frontier.url u ON u.id = v.url_id
JOIN frontier.host h ON h.id = u.host_id
LEFT JOIN archive.request r ON r.visit_id = v.id AND r.started_at = v.started_at AND r.number = 0
LEFT JOIN archive.file f ON f.visit_id = v.id AND f.started_at = v.started_at
WHERE v.job_id = $1
"""


@pytest.fixture(scope="module")
def served(
    server_dsn: str, replay: ReplayServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[httpx.Client, str]]:
    """A client of a server that reaches the recorded hosts, and the server's database."""
    with database_of_its_own(server_dsn) as dsn:
        settings = environment(dsn, tmp_path_factory.mktemp("replay"), **replay.env())
        with serving(settings) as (url, _), httpx.Client(base_url=url, timeout=60) as client:
            yield client, dsn


def wait(client: httpx.Client, path: str) -> str:
    deadline = monotonic() + _SECONDS
    while (status := client.get(path).json()["status"]) == "scraping" and monotonic() < deadline:
        sleep(0.5)
    return str(status)


def by_canonical_url(replay: ReplayServer) -> dict[str, Recording]:
    """What the server answers for each URL as Trapline writes it."""
    urls = {canonical(url): url for url in replay.recordings}
    return {url: replay.recordings.get(url) or replay.recordings[urls[url]] for url in urls}


async def visits(dsn: str, job: str) -> dict[str, Any]:
    conn = await asyncpg.connect(dsn)
    try:
        return {row["url"]: row for row in await conn.fetch(_VISITS, job)}
    finally:
        await conn.close()


def faults(recording: Recording, row: Any) -> Iterator[str]:
    """What differs between a visit and its recording."""
    code = ExitCode(row["exit_code"])
    if code in (ExitCode.UNEXPECTED, ExitCode.STALLED):
        yield f"{recording.url}: {row['message']}"
    if code is ExitCode.ROBOTS_DISALLOWED:
        return
    if row["status"] != recording.response.status:
        yield f"{recording.url}: {row['status']} {row['message']}"
    redirected = recording.response.status in REDIRECTS or b'http-equiv="Refresh"' in recording.body
    digest = hashlib.sha256(recording.body).digest()
    if code is ExitCode.CONTENT and not redirected and row["sha256"] != digest:
        yield f"{recording.url}: other bytes"


async def test_scraping(served: tuple[httpx.Client, str], replay: ReplayServer) -> None:
    client, dsn = served
    recordings = by_canonical_url(replay)
    answer = client.post("/v2/batch/scrape", json={"urls": list(recordings)})
    assert answer.status_code == 200, answer.text
    job = answer.json()["id"]
    assert wait(client, f"/v2/batch/scrape/{job}") == "completed"
    rows = await visits(dsn, job)
    assert recordings.keys() <= rows.keys()
    assert not [x for url, one in recordings.items() for x in faults(one, rows[url])]


async def test_crawling(served: tuple[httpx.Client, str], replay: ReplayServer) -> None:
    client, dsn = served
    recordings = by_canonical_url(replay)
    jobs = []
    for host in replay.hosts:
        start = next(url for url, one in recordings.items() if one.host == host)
        body = {
            "url": start,
            "limit": 40,
            "crawlEntireDomain": True,
            "ignoreQueryParameters": False,
        }
        answer = client.post("/v2/crawl", json=body)
        assert answer.status_code == 200, answer.text
        jobs.append(answer.json()["id"])
    for job in jobs:
        status = wait(client, f"/v2/crawl/{job}")
        rows = await visits(dsn, job)
        # A crawl that got no page has failed.
        got = [row for row in rows.values() if row["exit_code"] == ExitCode.CONTENT]
        assert status == ("completed" if got else "failed"), list(rows)
        seen = {url: recordings[url] for url in rows if url in recordings}
        assert seen
        assert not [x for url, one in seen.items() for x in faults(one, rows[url])]
