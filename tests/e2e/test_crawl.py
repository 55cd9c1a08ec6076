"""`trapline crawl` against the test site, compared with what the site itself knows and saw."""

import asyncio
import json
import re
import signal

import pytest

from tests.site.site import Site
from tests.support.cli import Trapline


@pytest.fixture
def crawler(trapline: Trapline, site: Site) -> Trapline:
    # With a browser, pages that scripts fill are asked for twice and have further links.
    environment = trapline.environment | site.env() | {"TRAPLINE_BROWSER": "none"}
    return Trapline(environment, trapline.directory)


async def test_every_page_is_fetched_once_and_none_that_robots_forbid(
    crawler: Trapline, site: Site
) -> None:
    truth = site.reachable(site.url, nofollow=True, hidden=True, sitemaps=True)
    done = await crawler("crawl", site.url, "--delay", "0", "--concurrency", "16", "--json")
    assert done.status == 0, done.err
    seen = site.log.pages()
    assert set(seen) == truth.fetched
    assert {url: times for url, times in seen.items() if times > 1} == {}
    assert not truth.forbidden & set(seen)
    job = done.json["job"]
    assert job["status"] == "completed"
    assert job["total"] == job["completed"] + job["failed"] + job["skipped"]
    assert {row["url"] for row in done.json["report"]["broken"]} == set(truth.broken)
    await _check_logs(crawler, job["id"], truth.forbidden)


async def test_the_second_crawl_is_told_what_has_not_changed(crawler: Trapline, site: Site) -> None:
    options = ("--limit", "40", "--delay", "0", "--concurrency", "8", "--sitemap", "skip", "--json")
    first = await crawler("crawl", f"{site.url}manual/", *options)
    assert first.json["report"]["ends"].get("not_modified") is None
    second = await crawler("crawl", f"{site.url}manual/", *options)
    assert second.json["report"]["ends"]["not_modified"] > 0
    assert second.json["job"]["total"] == first.json["job"]["total"]


async def test_pages_that_are_not_due_are_left_alone(crawler: Trapline, site: Site) -> None:
    options = ("--limit", "12", "--delay", "0", "--sitemap", "skip", "--json")
    first = await crawler("crawl", f"{site.url}manual/", *options)
    seen = len(site.log.pages())
    again = await crawler("crawl", f"{site.url}manual/", *options, "--due")
    assert len(site.log.pages()) == seen
    # Its links are followed as they were, so the crawl comes as far.
    assert again.json["job"]["total"] == first.json["job"]["total"]
    always = {"TRAPLINE_RECRAWL_LEAST_HOURS": "0.000001", "TRAPLINE_RECRAWL_MOST_HOURS": "0.000001"}
    await crawler("crawl", f"{site.url}manual/", *options, "--force", **always)
    await crawler("crawl", f"{site.url}manual/", *options, "--due")
    assert max(site.log.pages().values()) == 3


async def test_a_limit_is_exact(crawler: Trapline, site: Site) -> None:
    done = await crawler("crawl", site.url, "--limit", "7", "--delay", "0", "--json")
    assert done.json["job"]["completed"] - _kickoffs(done.json) == 7
    pages = {"completed": 7, "remaining": 0, "failed": 0, "skipped": 0}
    # The site's robots.txt forbids what its first page links to.
    assert done.json["pages"] == pages | {"robots_blocked": True}
    assert len(site.log.pages()) == 7


async def test_the_summary_names_what_went_wrong_and_where_the_rest_is(
    crawler: Trapline, site: Site
) -> None:
    site.fail("/manual/battery.html", status=404)
    secrets = "".join(f'<a href="/private/room-{n}/">{n}</a>' for n in range(12))
    site.change("/", body=f'{secrets}<a href="/manual/battery.html">Battery</a>'.encode())
    options = ("--limit", "2", "--delay", "0", "--sitemap", "skip")
    done = await crawler("crawl", site.url, *options)
    assert done.status == 0, done.err
    assert re.search(r"Crawl \S+ completed: 1 pages, 1 failed, 0 skipped, 0 redirects\.", done.out)
    assert site.at("/manual/battery.html") in done.out
    assert f"from {site.url}" in done.out
    assert "Forbidden by robots.txt (12):" in done.out
    assert done.out.count("/private/room-") == 10
    job = re.search(r"and 2 more: trapline jobs logs (\S+)", done.out)
    assert job is not None, done.out
    logged = await crawler("jobs", "logs", job[1])
    assert logged.out.count("/private/room-") >= 12


async def test_what_was_crawled_can_be_searched(crawler: Trapline, site: Site) -> None:
    options = ("--limit", "4", "--delay", "0", "--sitemap", "skip", "--index")
    done = await crawler("crawl", f"{site.url}manual/", *options)
    assert done.status == 0, done.err
    assert "trapline search" in done.out
    found = await crawler("search", "manual", "--passages", "--limit", "100", "--json")
    urls = {one["uri"] for one in found.json["items"]}
    assert urls == set(site.log.pages())


async def test_pages_come_out_as_files(crawler: Trapline, site: Site) -> None:
    done = await crawler(
        "crawl",
        f"{site.url}manual/",
        "--limit",
        "5",
        "--out",
        "out",
        "--jsonl",
        "out.jsonl",
        "--delay",
        "0",
    )
    assert done.status == 0, done.err
    files = list((crawler.directory / "out").rglob("*.md"))
    lines = (crawler.directory / "out.jsonl").read_text().splitlines()
    assert len(files) == len(lines) == 5
    assert all(file.read_text().startswith("---\nurl: ") for file in files)
    assert all(json.loads(line)["markdown"] for line in lines)


async def test_ctrl_c_pauses_and_resume_goes_on(crawler: Trapline, site: Site) -> None:
    options = ("--delay", "0.05", "--sitemap", "skip", "--limit", "60")
    process = await crawler.start("crawl", site.url, *options, "--jsonl", "grown.jsonl")
    grown = crawler.directory / "grown.jsonl"
    async with asyncio.timeout(150):
        while not (grown.exists() and grown.read_bytes().count(b"\n") >= 3):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert process.returncode == 130
    job = re.search(r"trapline crawl --resume (\S+)", err.decode())
    assert job is not None, err.decode()
    before = len(site.log.pages())
    done = await crawler("crawl", "--resume", job[1], "--json")
    assert done.status == 0, done.err
    seen = site.log.pages()
    assert len(seen) > before
    # A request that was under way when the crawl was paused was finished, not repeated.
    assert {url for url, times in seen.items() if times > 1} == set()
    # The file belongs to the job: the resumed crawl completed it without being told again.
    lines = grown.read_text().splitlines()
    assert len({json.loads(line)["url"] for line in lines}) == len(lines)
    assert len(lines) == done.json["pages"]["completed"]
    refused = await crawler("crawl", "--resume", job[1][:23])
    assert (refused.status, "--out" in refused.err) == (5, True)
    written = await crawler("crawl", "--resume", job[1][:23], "--out", "late", "--json")
    assert written.status == 0, written.err
    assert len(list((crawler.directory / "late").rglob("*.md"))) == len(lines)


async def test_unwritable_files_are_refused_before_any_request(
    crawler: Trapline, site: Site
) -> None:
    refused = await crawler("crawl", site.url, "--jsonl", "nowhere/pages.jsonl")
    assert (refused.status, "there is no folder" in refused.err) == (2, True)
    assert site.log.pages() == {}


async def test_after_kill_9_only_requests_in_flight_are_repeated(
    crawler: Trapline, site: Site
) -> None:
    process = await crawler.start(
        "crawl", site.url, "--delay", "0", "--concurrency", "4", "--sitemap", "skip"
    )
    await asyncio.to_thread(site.log.wait, lambda log: len(log.pages()) >= 30, 150)
    process.kill()
    await process.communicate()
    (job,) = [
        line for line in (await crawler("db", "psql", "--", "-Atc", _JOBS)).out.splitlines() if line
    ]
    done = await crawler("crawl", "--resume", job, "--json")
    assert done.status == 0, done.err
    twice = {url for url, times in site.log.pages().items() if times > 1}
    # Those being fetched, and those fetched but not yet in a finished batch.
    assert len(twice) <= 30
    truth = site.reachable(site.url, nofollow=True, hidden=True)
    assert set(site.log.pages()) == truth.fetched


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "javascript:alert(1)", "http://", "http://user:secret@example.com/"],
)
async def test_what_is_no_url_is_one_sentence(trapline: Trapline, url: str) -> None:
    refused = await trapline("crawl", url)
    assert refused.status == 2
    assert refused.err.splitlines()[-1].startswith("trapline: ")
    assert "Traceback" not in refused.err


async def test_a_private_address_is_refused_unless_opened(trapline: Trapline, site: Site) -> None:
    done = await trapline("crawl", site.url, "--json")
    (broken,) = done.json["report"]["broken"]
    assert "TRAPLINE_ALLOW_NETS" in broken["error"]
    assert len(site.log) == 0


def _kickoffs(answer: dict[str, object]) -> int:
    """Tasks that are no pages: the kick-off and the sitemaps."""
    job = answer["job"]
    assert isinstance(job, dict)
    return int(job["total"]) - int(job["reserved"]) - int(job["skipped"])


_JOBS = "SELECT id FROM queue.job WHERE kind = 'crawl'"


async def _check_logs(crawler: Trapline, job: str, forbidden: set[str]) -> None:
    """The log says what robots.txt forbids, what was broken, and when it began and ended."""
    lines = (await crawler("jobs", "logs", job, "--json")).out.splitlines()
    logged = [json.loads(line) for line in lines]
    assert logged[0]["message"] == "The job has begun."
    assert logged[-1]["message"] == "The job has completed."
    blocked = {line["context"].get("url") for line in logged if line["step"] == "robots"}
    assert blocked - {None} == forbidden
    assert {line["step"] for line in logged} >= {"start", "robots", "sitemap", "fetch", "job"}
    severe = (await crawler("jobs", "logs", job, "--level", "warning")).out.splitlines()
    assert 0 < len(severe) < len(lines)
    assert not [line for line in severe if " INFO " in line]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no-such-page/", "no such page (404)"),
        ("private/", "robots.txt forbids"),
        ("http://10.1.2.3/", "private or reserved address"),
    ],
)
async def test_a_crawl_without_a_page_has_failed(
    crawler: Trapline, site: Site, path: str, reason: str
) -> None:
    start = path if path.startswith("http") else f"{site.url}{path}"
    done = await crawler("crawl", start, "--sitemap", "skip", "--delay", "0", "--json")
    assert done.status == 1
    assert done.json["job"]["status"] == "failed"
    assert reason in done.json["job"]["error"]
    assert reason in done.err


async def test_a_limit_that_stopped_a_crawl_is_named(crawler: Trapline, site: Site) -> None:
    done = await crawler("crawl", site.url, "--limit", "3", "--delay", "0")
    assert re.search(r"3 pages \(limit\), \d+ more URLs known", done.out), done.out
