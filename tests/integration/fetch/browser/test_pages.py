"""Pages that scripts fill, in a real browser."""

import asyncio

import pytest

from tests.support.script_site import Renderer
from trapline.errors import ExitCode
from trapline.fetch import CookieJar
from trapline.model import APPROVED, Approval, RedirectSource

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/static", "All of it is in the source."),
        ("/fetched", "<h1>fetched data</h1>"),
        ("/chained", "second fetched data"),
        ("/shadow", "<p>around <b>light</b> it</p>"),
        ("/shadow", "behind closed doors"),
        ("/framed", "All of it is in the source."),
        ("/streaming", "streamed"),
        ("/alerting", "after the alerts"),
        ("/worker", "refused"),
    ],
)
async def test_the_text_is_there(render: Renderer, path: str, text: str) -> None:
    page = await render(path)
    assert page.exit_code is ExitCode.CONTENT
    assert text in page.body.decode()
    assert page.status == 200
    assert page.media_type == "text/html"
    assert page.rendering is not None
    assert page.rendering.ready == "quiet"
    assert page.rendering.reason == "a test"


async def test_a_redirect_of_the_server_is_traced(render: Renderer) -> None:
    page = await render("/redirect")
    assert page.url.endswith("/fetched")
    assert [(r.source, r.permanent) for r in page.redirects] == [(RedirectSource.HTTP, True)]
    assert [(r.exit_code, r.status) for r in page.requests] == [
        (ExitCode.REDIRECTED, 301),
        (ExitCode.CONTENT, 200),
    ]
    assert page.requests[-1].remote_address == "127.0.0.1"


async def test_a_redirect_by_script_is_traced(render: Renderer) -> None:
    page = await render("/moved")
    assert page.url.endswith("/fetched")
    assert b"fetched data" in page.body
    assert [r.source for r in page.redirects] == [RedirectSource.SCRIPT]


async def test_endless_redirects_by_script_end(render: Renderer) -> None:
    page = await render("/circling")
    assert page.exit_code is ExitCode.TOO_MANY_REDIRECTS


@pytest.mark.parametrize(("path", "refused"), [("/redirect", "/fetched"), ("/moved", "/fetched")])
async def test_each_hop_needs_approval(render: Renderer, path: str, refused: str) -> None:
    async def approve(url: str) -> Approval:
        return Approval(ExitCode.OUT_OF_SCOPE) if url.endswith(refused) else APPROVED

    before = render.site.hits[refused]
    page = await render(path, approve=approve)
    assert page.exit_code is ExitCode.OUT_OF_SCOPE
    assert page.url.endswith(refused)
    assert render.site.hits[refused] == before


async def test_a_refused_page_is_not_requested(render: Renderer) -> None:
    async def approve(_: str) -> Approval:
        return Approval(ExitCode.ROBOTS_DISALLOWED)

    before = render.site.hits["/static"]
    page = await render("/static", approve=approve)
    assert page.exit_code is ExitCode.ROBOTS_DISALLOWED
    assert render.site.hits["/static"] == before


async def test_a_missing_page_keeps_its_status(render: Renderer) -> None:
    page = await render("/missing")
    assert page.exit_code is ExitCode.NOT_FOUND
    assert page.status == 404
    assert b"gone" in page.body


async def test_a_file_is_fetched_over_http(render: Renderer) -> None:
    page = await render("/file.pdf")
    assert page.exit_code is ExitCode.CONTENT
    assert page.body == b"%PDF-1.4 a file"
    assert page.media_type == "application/pdf"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://10.0.0.1/", ExitCode.UNSAFE_ADDRESS),
        ("http://127.0.0.2/", ExitCode.UNSAFE_ADDRESS),
        ("http://name.invalid/", ExitCode.DNS_FAILURE),
        ("http://127.0.0.1:1/", ExitCode.UNSAFE_ADDRESS),
        ("http://127.0.0.1:2222/", ExitCode.CONNECTION_REFUSED),
    ],
)
async def test_what_cannot_be_reached_says_why(render: Renderer, url: str, code: ExitCode) -> None:
    page = await render(url)
    assert page.exit_code is code
    assert page.body == b""


async def test_the_page_sees_what_the_request_says(render: Renderer) -> None:
    page = await render(
        "/agent",
        request={"user_agent": "Robot/1", "language": "de-AT,de;q=0.9", "mobile": True},
        country="AT",
    )
    text = page.body.decode()
    assert "Robot/1 | de-AT | Europe/Vienna" in text
    assert "| 412 | true" in text
    assert "Robot/1" in render.site.headers["/agent"]["User-Agent"]
    assert render.site.headers["/agent"]["Accept-Language"].startswith("de-AT,de")


async def test_secret_headers_go_to_the_first_origin_only(render: Renderer) -> None:
    headers = {"Authorization": "Bearer secret", "X-Own": "1", "Cookie": "a=b"}
    await render("/pictured", request={"headers": headers})
    assert render.site.headers["/pictured"]["Authorization"] == "Bearer secret"
    assert render.site.headers["/pictured"]["Cookie"] == "a=b"
    assert "Authorization" not in render.site.headers["/script.js"]
    assert render.site.headers["/script.js"]["X-Own"] == "1"


async def test_cookies_of_a_job_come_and_go(render: Renderer) -> None:
    jar = CookieJar()
    first = await render("/cookie", request={"cookies": jar})
    second = await render("/cookie", request={"cookies": jar})
    assert b"none" in first.body
    assert b"seen=yes" in second.body


async def test_fresh_contexts_share_no_cookies(render: Renderer) -> None:
    assert b"none" in (await render("/cookie")).body
    assert b"none" in (await render("/cookie")).body


async def test_a_shared_context_keeps_cookies_and_its_tab(render: Renderer) -> None:
    pages = [await render("/cookie", shared_context="job") for _ in range(3)]
    assert [b"seen=yes" in page.body for page in pages] == [False, True, True]
    other = await render("/cookie", shared_context="another job")
    assert b"none" in other.body


async def test_pictures_are_loaded_for_pictures_only(render: Renderer) -> None:
    before = render.site.hits["/picture.png"]
    await render("/pictured")
    assert render.site.hits["/picture.png"] == before


async def test_many_pages_at_once_wait_for_slots(render: Renderer) -> None:
    pages = await asyncio.gather(*(render("/fetched") for _ in range(20)))
    assert {page.exit_code for page in pages} == {ExitCode.CONTENT}
    assert all(b"fetched data" in page.body for page in pages)
    status = render.fetcher.status()
    assert status.queued == 0
    assert status.available_contexts == 8
