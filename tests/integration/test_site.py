"""The test site itself: what a real client and raw sockets see of it."""

from aiohttp import ClientSession

from tests.site.site import Site


async def test_answers_and_logs_what_was_asked(site: Site) -> None:
    url = site.at("/journal/the-case-for-brass/")
    async with ClientSession() as client, client.get(url, headers={"X-Mark": "1"}) as answer:
        body = await answer.text()
    assert answer.status == 200
    assert "<h1" in body
    (entry,) = site.log
    assert (entry.method, entry.target, entry.status) == (
        "GET",
        "/journal/the-case-for-brass/",
        200,
    )
    assert entry.headers["x-mark"] == "1"
    assert entry.url == url
