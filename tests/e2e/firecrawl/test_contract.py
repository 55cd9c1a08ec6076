"""The contract of /v1 and /v2 over HTTP, point by point, where clients and their tests look."""

import json
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest
import requests
from websockets.sync.client import connect

from tests.site.site import Site

_PAGE = (
    "<html><head><title>{0}</title></head><body><main><h1>{0}</h1><p>{1}</p></main></body></html>"
)
_PROSE = "Plain words fill this page so that a reader has enough of them to keep. " * 4


class Origin(ThreadingHTTPServer):
    """A site whose pages the tests set; it counts how often each was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.hits: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def put(self, path: str, body: str | bytes, kind: str = "text/html; charset=utf-8") -> str:
        content = body.encode() if isinstance(body, str) else body
        self.pages[path] = (200, {"Content-Type": kind}, content)
        return self.url(path)

    def html(self, path: str, title: str = "A page", words: str = _PROSE) -> str:
        return self.put(path, _PAGE.format(title, words))

    def redirect(self, path: str, to: str) -> str:
        self.pages[path] = (302, {"Location": to}, b"")
        return self.url(path)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Origin
    _missing: ClassVar[tuple[int, dict[str, str], bytes]] = (404, {}, b"no")

    def do_GET(self) -> None:
        self.server.hits.append(self.path)
        status, headers, body = self.server.pages.get(self.path, self._missing)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (as it is overridden)
        del format, args


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    server = Origin()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


def _post(base: str, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    response = requests.post(f"{base}{path}", json=body, timeout=120)
    assert response.status_code == status, response.text
    return dict(response.json())


def _scrape(base: str, url: str, **options: Any) -> dict[str, Any]:
    return dict(_post(base, "/v2/scrape", url=url, **options)["data"])


def _end(base: str, path: str, job: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + 180
    while True:
        body = requests.get(f"{base}{path}/{job['id']}", timeout=60).json()
        if body["status"] != "scraping":
            return dict(body)
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_change_tracking_fetches_what_the_cache_has(served_site: str, origin: Origin) -> None:
    url = origin.html("/tracked", words=_PROSE + "First.")
    formats = ["markdown", {"type": "changeTracking", "tag": str(uuid4())}]
    assert _scrape(served_site, url, formats=formats)["changeTracking"]["changeStatus"] == "new"
    origin.html("/tracked", words=_PROSE + "Second, and quite another sentence.")
    again = _scrape(served_site, url, formats=formats)
    assert again["changeTracking"]["changeStatus"] == "changed"
    assert "Second" in again["markdown"]


def test_personal_data_is_redacted_in_every_door(served_site: str, origin: Origin) -> None:
    words = _PROSE + "Write to jo@private.example or call +43 664 123 45 67."
    url = origin.html("/person", "About jo@private.example", words)
    doors = [
        _post(served_site, "/v2/scrape", url=url, redactPII=True, formats=["markdown", "links"]),
        _end(
            served_site,
            "/v2/batch/scrape",
            _post(served_site, "/v2/batch/scrape", urls=[url], redactPII=True),
        ),
        _end(
            served_site,
            "/v2/crawl",
            _post(served_site, "/v2/crawl", url=url, limit=1, scrapeOptions={"redactPII": True}),
        ),
        requests.post(
            f"{served_site}/v2/parse",
            files={"file": ("a.html", _PAGE.format("x", words), "text/html")},
            data={"options": '{"redactPII": true}'},
            timeout=60,
        ).json(),
    ]
    for body in doors:
        assert "<EMAIL>" in str(body), body
        assert "<PHONE>" in str(body)
        assert "jo@private" not in str(body)
        assert "664 123" not in str(body)
    scraped = doors[0]["data"]
    assert "names" in scraped["warning"]
    stored = requests.get(
        f"{served_site}/v2/scrape/{scraped['metadata']['scrapeId']}", timeout=60
    ).json()
    assert "jo@private" not in str(stored)
    assert "<EMAIL>" in str(stored)


def test_redaction_fails_closed(served_site: str, origin: Origin) -> None:
    url = origin.html("/closed")
    for wrong in (
        {"redactPII": {"mode": "sloppy"}},
        {"redactPII": {"entities": ["PERSON"]}},
        {"redactPII": True, "formats": ["rawHtml"]},
    ):
        assert _post(served_site, "/v2/scrape", 400, url=url, **wrong)["success"] is False


def test_an_ignored_option_is_named(served_site: str, origin: Origin) -> None:
    url = origin.html("/ignored")
    assert "warning" not in _scrape(served_site, url, blockAds=True, fastMode=False, proxy="auto")
    job = _post(served_site, "/v2/batch/scrape", urls=[url], proxy="stealth")
    assert "proxy" in job["warning"]
    crawl = _post(served_site, "/v2/crawl", url=url, limit=1, scrapeOptions={"fastMode": True})
    assert "fastMode" in crawl["warning"]
    mapped = _post(served_site, "/v2/map", url=url, auditMetadata={"username": "x"})
    assert "auditMetadata" in mapped["warning"]


def test_a_search_takes_what_newer_clients_send(served_site: str) -> None:
    body = _post(
        served_site,
        "/v2/search",
        query="rabbits",
        sources=[{"type": "web"}, {"type": "oracle", "depth": 3}],
        domainTools=True,
        toolDetail="full",
        brandNew=1,
    )
    for name in ("sources.oracle", "domainTools", "toolDetail", "brandNew"):
        assert name in body["warning"]
    assert list(body["data"]) == ["web"]


def test_a_search_refuses_what_a_scrape_refuses(served_site: str) -> None:
    options = {"formats": ["markdown"], "profile": {"name": "mine"}}
    _post(served_site, "/v2/search", 400, query="rabbits", scrapeOptions=options)


def test_a_file_that_is_not_parsed_comes_in_base64(served_site: str, site: Site) -> None:
    url = site.at("/downloads/price-list.pdf")
    page = _scrape(served_site, url, parsers=[])
    assert b64decode(page["markdown"]).startswith(b"%PDF")


def test_every_answer_has_an_id_and_the_cache_is_named_only_where_it_may_answer(
    served_site: str, origin: Origin
) -> None:
    url = origin.html("/cached")
    fresh = _scrape(served_site, url, maxAge=0)["metadata"]
    assert "cacheState" not in fresh
    body = _post(served_site, "/v2/scrape", url=url, maxAge=600_000)
    hit = body["data"]["metadata"]
    assert hit["cacheState"] == "hit"
    assert UUID(hit["scrapeId"])
    assert body["scrape_id"] == hit["scrapeId"]


@pytest.mark.parametrize("path", ["/v2/scrape", "/v2/crawl", "/v2/map", "/v1/scrape", "/v1/crawl"])
def test_a_word_is_no_url(served_site: str, path: str) -> None:
    _post(served_site, path, 400, url="not-a-valid-url")


def test_a_map_without_time_is_a_timeout(served_site: str, origin: Origin) -> None:
    assert (
        _post(served_site, "/v2/map", 408, url=origin.url("/"), timeout=1)["code"] == "MAP_TIMEOUT"
    )


def test_an_empty_prompt_is_none(served_site: str, origin: Origin) -> None:
    body = _post(served_site, "/v2/crawl", url=origin.html("/prompt"), prompt="", limit=1)
    assert "promptGeneratedOptions" not in body


def test_v1_checks_depth_and_flags(served_site: str, origin: Origin) -> None:
    deep = origin.html("/a/b/c")
    assert "maxDepth" in _post(served_site, "/v1/crawl", 400, url=deep, maxDepth=2)["error"]
    _post(served_site, "/v1/crawl", 400, url=deep, ignoreSitemap="yes")
    _post(served_site, "/v1/map", 400, url=deep, sitemapOnly="yes")


def test_v1_has_the_usage_by_month(served_site: str) -> None:
    for kind in ("credit", "token"):
        body = requests.get(f"{served_site}/v1/team/{kind}-usage/historical", timeout=60).json()
        assert body["success"] is True
        assert isinstance(body["periods"], list)


@pytest.mark.parametrize(
    ("kind", "body", "fence"),
    [
        ("application/json", '{"a": 1}', "```json"),
        ("text/plain", "Just some words.", "Just some words."),
    ],
)
def test_a_text_file_is_its_own_html(
    served_site: str, origin: Origin, kind: str, body: str, fence: str
) -> None:
    url = origin.put(f"/text-{len(body)}", body, kind)
    page = _scrape(served_site, url, formats=["markdown", "html", "rawHtml"])
    assert page["rawHtml"] == page["html"] == body
    assert page["markdown"].startswith(fence)


def test_a_crawl_of_sitemaps_without_any_has_its_start_page(
    served_site: str, origin: Origin
) -> None:
    url = origin.html("/lonely")
    job = _post(served_site, "/v2/crawl", url=url, sitemap="only", limit=5)
    ended = _end(served_site, "/v2/crawl", job)
    assert [page["metadata"]["sourceURL"] for page in ended["data"]] == [url]


def test_a_watcher_gets_the_documents_with_the_end(served_site: str, origin: Origin) -> None:
    url = origin.html("/watched")
    job = _post(served_site, "/v2/batch/scrape", urls=[url])
    socket = served_site.replace("http", "ws", 1) + f"/v2/batch/scrape/{job['id']}"
    with connect(socket) as watcher:
        last: dict[str, Any] = {}
        for message in watcher:
            last = json.loads(message)
    assert last["type"] == "done"
    assert [page["metadata"]["sourceURL"] for page in last["data"]["data"]] == [url]


def test_the_pages_of_a_file_are_counted_as_read_and_in_all(served_site: str, site: Site) -> None:
    url = site.at("/downloads/price-list.pdf")
    found = _scrape(served_site, url, parsers=[{"type": "pdf", "maxPages": 1}])["metadata"]
    assert found["numPages"] == 1
    assert found["totalPages"] >= 1


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.png", b"image-data", "image/png"),
        ("a.pdf", b"\x89PNG\r\n\x1a\n" + bytes(100), "application/pdf"),
        ("a.bin", bytes(range(256)) * 4, "application/octet-stream"),
    ],
)
def test_a_file_without_text_is_refused(
    served_site: str, name: str, content: bytes, kind: str
) -> None:
    response = requests.post(
        f"{served_site}/v2/parse", files={"file": (name, content, kind)}, timeout=60
    )
    assert response.status_code == 400
    assert response.json()["code"] == "UNSUPPORTED_FILE_TYPE"
