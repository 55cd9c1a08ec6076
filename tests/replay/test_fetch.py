"""Every recorded response is fetched with its status, headers and bytes."""

import asyncio
from pathlib import Path

from tests.replay.recordings import Recording, read_recordings
from tests.replay.server import ReplayServer
from tests.support.origin_server import Client, client
from trapline.fetch.outcome import REDIRECTS
from trapline.fetch.target import parse_target, resolve_location


def expected_headers(recording: Recording) -> list[tuple[str, str]]:
    """All, but for a length beside a transfer coding, which means nothing."""
    headers = recording.response.headers
    is_coded = recording.response.header("transfer-encoding") is not None
    return [one for one in headers if not (is_coded and one[0].lower() == "content-length")]


async def check(fetch: Client, recording: Recording) -> None:
    got = await fetch(recording.url)
    assert got.requests, (recording.url, got.message)
    assert got.requests[0].status == recording.response.status, (recording.url, got.message)
    if recording.response.status not in REDIRECTS:
        assert got.body == recording.body, recording.url
        names = [name.lower() for name, _ in got.headers]
        assert names == [name.lower() for name, _ in expected_headers(recording)], recording.url
        return
    location = recording.response.header("location") or ""
    target = resolve_location(parse_target(recording.url, 10_000), location, 10_000)
    assert got.redirects[0].to_url == target.text, recording.url


async def test_all_recorded_responses(replay: ReplayServer) -> None:
    tls = replay.authority.client_context()
    places = asyncio.Semaphore(20)

    async def bounded(fetch: Client, recording: Recording) -> None:
        async with places:
            await check(fetch, recording)

    async with client(resolve=replay.env()["TRAPLINE_RESOLVE"], tls=tls) as fetch:
        checks = (bounded(fetch, one) for one in replay.recordings.values())
        failed = [one for one in await asyncio.gather(*checks, return_exceptions=True) if one]
    assert failed == []


def test_archives_of_the_drafts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "old.warc"
    block = b"HTTP/1.0 200 OK\r\n\r\nhello"
    path.write_bytes(
        b"WARC/0.17\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/\r\n"
        b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(block), block)
    )
    assert read_recordings([path])["http://a.test/"].body == b"hello"
