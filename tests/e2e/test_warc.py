"""A crawl goes out as WARC, is read by another tool, and comes in again elsewhere."""

import gzip
import re
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.site.site import Site
from tests.support.cli import Trapline


@pytest.fixture
def crawler(trapline: Trapline, site: Site) -> Trapline:
    # With a browser, pages that scripts fill are asked for twice and have further links.
    environment = trapline.environment | site.env() | {"TRAPLINE_BROWSER": "none"}
    return Trapline(environment, trapline.directory)


async def versions(trapline: Trapline) -> list[str]:
    query = (
        "SELECT u.url, v.text, f.last_modified, f.size"
        " FROM store.version v JOIN store.page p ON p.version_id = v.id"
        " JOIN frontier.url_text u ON u.id = p.url_id JOIN archive.file f USING (visit_id) ORDER BY 1"
    )
    return (await trapline("db", "psql", "--", "-Atc", query)).out.splitlines()


def read(path: Path) -> list[tuple[str, str | None, str | None, bytes]]:
    with path.open("rb") as file:
        return [
            (
                record.rec_type,
                record.rec_headers["WARC-Target-URI"],
                record.http_headers and record.http_headers.get_statuscode(),
                record.content_stream().read(),
            )
            for record in ArchiveIterator(file, check_digests="raise")
        ]


async def test_out_and_in_again(crawler: Trapline, site: Site, dsn: str) -> None:
    # All of the site: which pages are among the first so many is nobody's promise.
    done = await crawler(
        *("crawl", site.url, "--limit", "400", "--delay", "0", "--concurrency", "8"),
        *("--warc", "one.warc.gz", "--json"),
    )
    assert done.status == 0, done.err
    found = read(crawler.directory / "one.warc.gz")
    seen = site.log.pages()
    assert {url for kind, url, *_ in found if kind == "request"} <= set(seen)
    answers = {url: (status, body) for kind, url, status, body in found if kind == "response"}
    ok = {url for url, (status, _) in answers.items() if status == "200"}
    assert len(ok) > 20
    assert any(status in {"301", "302", "307"} for status, _ in answers.values())
    told = [body for kind, _, _, body in found if kind == "metadata"]
    job = done.json["job"]
    assert len(told) == job["reserved"] + job["skipped"]
    for body in told:
        assert re.match(
            rb"visit: [0-9a-f-]{36}\r\nexit-code: \d+ \w+\r\nfetchTimeMs: \d+\r\n", body
        )
        assert b"agent: crawl\r\n" in body
        assert f"job: {job['id']}\r\n".encode() in body
    assert any(b" first-byte-ms=" in body and b" status=200 " in body for body in told)

    elsewhere = Trapline(crawler.environment | {"DATABASE_URL": dsn}, crawler.directory)
    taken = await elsewhere("import", "one.warc.gz", "--json")
    assert taken.status == 0, taken.err
    (counts,) = taken.json
    assert counts["pages"] == len(ok)
    assert counts["problems"] == []
    assert await versions(elsewhere) == await versions(crawler)
    # Once more changes nothing, and what comes out again is what went in.
    again = (await elsewhere("import", "one.warc.gz", "--json")).json[0]
    assert (again["pages"], again["versions"]) == (len(ok), 0)
    assert (await elsewhere("export", "--warc", "two.warc.gz", "--json")).status == 0
    second = read(elsewhere.directory / "two.warc.gz")
    back = {url: body for kind, url, _, body in second if kind == "response"}
    assert back == {url: body for url, (_, body) in answers.items() if url in ok}
    assert (await elsewhere("audit")).status == 0


async def test_what_is_exported_can_be_chosen(crawler: Trapline, site: Site) -> None:
    options = ("--limit", "3", "--delay", "0", "--sitemap", "skip", "--json")
    first = (await crawler("crawl", f"{site.url}manual/", *options)).json["job"]["id"]
    await crawler("crawl", f"{site.url}manual/", *options)
    job = await crawler("export", "--warc", "job.warc.gz", "--job", first, "--json")
    every = await crawler("export", "--warc", "all.warc.gz", "--json")
    named = await crawler("export", "--warc", "site.warc.gz", "--site", site.url, "--json")
    assert 1 < job.json["records"] < every.json["records"] == named.json["records"]
    kinds = [kind for kind, *_ in read(crawler.directory / "all.warc.gz")]
    assert kinds.count("revisit") > 0
    assert (await crawler("export", "--warc", "all.warc.gz")).status == 5
    assert (await crawler("export", "--warc", "x.warc.gz", "--site", "nowhere")).status == 3
    assert not (crawler.directory / "x.warc.gz").exists()
    assert (await crawler("export", "--warc", "-", "--json")).status == 2
    assert (await crawler("export", "--warc", "a.gz", "--job", first, "--site", "x")).status == 2


async def test_broken_files_are_one_sentence_and_what_was_whole_is_kept(
    crawler: Trapline, site: Site
) -> None:
    await crawler("crawl", f"{site.url}manual/", "--limit", "5", "--delay", "0", "--warc", "a.gz")
    whole = (crawler.directory / "a.gz").read_bytes()
    (crawler.directory / "cut.gz").write_bytes(whole[: len(whole) * 2 // 3])
    (crawler.directory / "no.gz").write_bytes(gzip.compress(b"<html>"))
    cut = await crawler("import", "cut.gz", "--json")
    assert cut.status == 2
    assert "cut.gz: The file ends in" in cut.err
    assert cut.json[0]["pages"] > 0
    no = await crawler("import", "no.gz")
    assert (no.status, no.err.count("\n")) == (2, 1)
    assert (await crawler("import", "nowhere.gz")).status == 2
