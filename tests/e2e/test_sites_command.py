"""`trapline sites`, `pages`, `changes` and `duplicates`: a site's life on the command line."""

import asyncio

import pytest

from tests.site.site import Site
from tests.support.cli import Trapline


@pytest.fixture
def command(trapline: Trapline, site: Site) -> Trapline:
    return Trapline(trapline.environment | site.env(), trapline.directory)


async def test_a_site_from_its_registration_to_its_purge(command: Trapline, site: Site) -> None:
    added = await command(
        "sites", "add", "Manual", f"{site.url}manual/",
        "--set", "limit=6", "--set", "sitemap=skip", "--set", "delay=0", "--json",
    )  # fmt: skip
    assert added.status == 0, added.err
    assert added.json["config"] == {"limit": 6, "sitemap": "skip", "delay": 0.0}
    wrong = await command("sites", "update", "manual", "--set", "include=(")
    assert wrong.status == 2
    assert "Traceback" not in wrong.err
    await command("sites", "update", "manual", "--set", "limit=4", "--note", "less")
    back = await command("sites", "rollback", "manual", "1", "--json")
    assert (back.json["config"]["limit"], back.json["config_number"]) == (6, 3)
    history = await command("sites", "history", "manual", "--json")
    assert [row["number"] for row in history.json] == [3, 2, 1]

    queued = await command("sites", "crawl", "manual", "--set", "limit=3")
    job = queued.out.strip()
    await _work_until_done(command, job)
    pages = await command("pages", "list", "--site", "manual", "--json")
    assert len(pages.json) == 3
    newest = await command("pages", "list", "--site", "manual", "--sort", "newest", "--json")
    assert newest.json == pages.json[::-1]
    assert (await command("pages", "list", "--sort", "taste")).status == 2
    url = f"{site.url}manual/"
    shown = await command("pages", "at", url)
    assert shown.out.strip()
    await command("scrape", url)
    two = await command("pages", "show", url)
    assert (two.status, "--site" in two.err) == (2, True)
    one = await command("pages", "show", url, "--site", "manual", "--json")
    assert one.json["site_id"] == added.json["id"]
    other = await command("pages", "show", url, "--site", "elsewhere")
    assert (other.status, "elsewhere" in other.err) == (3, True)
    assert (
        await command("pages", "diff", url, "--site", "manual")
    ).out.strip() == "Nothing changed."
    (document,) = (await command("pages", "documents", url, "--site", "manual", "--json")).json
    assert document["media_type"] == "text/html"
    changes = await command("changes", "--site", "manual", "--status", "new", "--json")
    assert len(changes.json) == 3
    oldest = await command(
        "changes", "--site", "manual", "--status", "new", "--sort", "oldest", "--json"
    )
    assert oldest.json == changes.json[::-1]
    assert (await command("duplicates", "list", "manual")).out.strip() == "No duplicates."
    no_group = await command("duplicates", "show", "manual", "17")
    assert (no_group.status, "no group 17" in no_group.err) == (3, True)

    await command("sites", "pause", "manual")
    assert (await command("sites", "crawl", "manual")).status == 5
    await command("sites", "resume", "manual")
    removed = await command("sites", "remove", "manual")
    assert added.json["id"] in removed.out
    purged = await command("sites", "purge", added.json["id"], "--yes")
    assert purged.status == 0, purged.err
    left = await command("pages", "list", "--json")
    assert added.json["id"] not in {page["site_id"] for page in left.json}


async def _work_until_done(command: Trapline, job: str) -> None:
    worker = await command.start("work")
    try:
        async with asyncio.timeout(60):
            while True:
                shown = await command("jobs", "show", job, "--json")
                if shown.json["status"] == "completed":
                    return
                await asyncio.sleep(0.2)
    finally:
        worker.terminate()
        await worker.communicate()
