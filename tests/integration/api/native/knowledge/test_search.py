"""Search over HTTP, by Firecrawl's clients and on the command line."""

from functools import partial
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.integration.api.native.admin.test_tenancy import bearer, key_of
from tests.support.cli import Trapline
from tests.support.search_corpus import Known, Text, index, source
from trapline.db.pool import Database
from trapline.knowledge.search import Searcher
from trapline.model import OrganisationId
from trapline.pipeline.scrape.web_search import WebQuery, WebSearch
from trapline.settings import Settings

SITE = "https://example.com"
FOX = Text(f"{SITE}/animals/fox", "# The fox\n\nFoxes hunt at night and run fast.", "Foxes")
DOG = Text(f"{SITE}/animals/dog", "# The dog\n\nDogs guard the house and bark.", "Dogs")
PDF = Text(f"{SITE}/paper.pdf", "Foxes and farmers", "Paper", content_type="application/pdf")


@pytest.fixture
async def indexed(database: Database, organisation_id: OrganisationId) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX, DOG, PDF])


async def call(api: aiohttp.ClientSession, body: Any = None, **options: Any) -> tuple[int, Any]:
    method = "GET" if body is None else "POST"
    path = options.pop("path", "/api/search")
    async with api.request(method, path, json=body, **options) as answer:
        return answer.status, await answer.json()


@pytest.mark.usefixtures("indexed")
async def test_get_and_post_find_the_same(api: aiohttp.ClientSession) -> None:
    status, by_url = await call(api, params={"q": "hunting fox", "explain": "true"})
    assert status == 200, by_url
    status, by_body = await call(api, {"query": "hunting fox", "explain": True})
    assert status == 200, by_body
    assert by_url["items"] == by_body["items"]
    first = by_url["items"][0]
    assert (first["url"], first["title"]) == (FOX.uri, "Foxes")
    assert set(first["explain"]) == {"keyword", "vector"}
    assert first["explain"]["keyword"]["rank"] == 1
    text, marks = first["highlight"]["text"], first["highlight"]["marks"]
    assert [text[start:end] for start, end in marks] == ["fox", "Foxes", "hunt"]
    assert set(by_url["milliseconds"]) == {"bm25", "embedding", "vector"}
    assert by_url["next"] is None
    _, plain = await call(api, {"query": "fox"})
    assert plain["items"][0]["explain"] is None


@pytest.mark.usefixtures("indexed")
async def test_filters_and_typos(api: aiohttp.ClientSession) -> None:
    _, found = await call(api, params={"q": "fox", "mode": "keyword", "type": "pdf"})
    assert [one["url"] for one in found["items"]] == [PDF.uri]
    _, found = await call(api, params={"q": "fox", "path": "/animals/", "mode": "keyword"})
    assert [one["url"] for one in found["items"]] == [FOX.uri]
    _, found = await call(api, params={"q": "gaurding", "mode": "keyword"})
    assert [one["url"] for one in found["items"]] == [DOG.uri]
    assert found["corrected"] == {"gaurding": ["guard"]}
    _, found = await call(api, params={"q": "gaurding", "mode": "keyword", "typos": "false"})
    assert found["items"] == []
    params = [("q", "fox"), ("source", str(uuid4())), ("source", str(uuid4()))]
    assert (await call(api, params=params))[1]["items"] == []


@pytest.mark.usefixtures("indexed")
async def test_results_come_in_pages(api: aiohttp.ClientSession) -> None:
    urls: list[str] = []
    cursor = None
    for _ in range(3):
        asked = {"query": "fox dog", "limit": 1} | ({"cursor": cursor} if cursor else {})
        _, found = await call(api, asked)
        urls += [one["url"] for one in found["items"]]
        cursor = found["next"]
    assert sorted(urls) == sorted([FOX.uri, DOG.uri, PDF.uri])
    assert cursor is None


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"query": ""},
        {"query": " \n"},
        {"query": "x" * 20_001},
        {"query": "x", "colour": "red"},
        {"query": "x", "mode": "magic"},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 101},
        {"query": "x", "since": "yesterday"},
        {"query": "x", "since": "2026-01-01T00:00:00"},
        {"query": "x", "source": ["not-an-id"]},
        {"query": "x", "keyword_weight": -1},
        {"query": "x", "keyword_weight": 0, "vector_weight": 0},
        {"query": "x", "cursor": "nonsense"},
        {"query": "x", "cursor": "WzEwMDAwMDAsMSwxXQ"},
    ],
)
async def test_what_cannot_be_asked_is_said(api: aiohttp.ClientSession, wrong: Any) -> None:
    status, problem = await call(api, wrong)
    assert status == 400, problem
    assert problem["detail"]


async def test_unknown_filters_are_refused_in_urls_too(api: aiohttp.ClientSession) -> None:
    assert (await call(api, params={"q": "x", "colour": "red"}))[0] == 400
    assert (await call(api, params={"q": "x", "site": "nowhere"}))[0] == 404


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    "words", ["the of and", '"fox', "a AND (b OR", "\u0000", "fox\u0000", "日本語"]
)
async def test_odd_words_are_answered(api: aiohttp.ClientSession, words: str) -> None:
    status, found = await call(api, {"query": words})
    assert status == (400 if words == "\u0000" else 200), found


@pytest.mark.usefixtures("indexed")
async def test_similar_pages(api: aiohttp.ClientSession) -> None:
    path = "/api/search/similar"
    status, found = await call(api, path=path, params={"url": FOX.uri, "type": "text/"})
    assert (status, [one["url"] for one in found["items"]]) == (200, [DOG.uri])
    assert (await call(api, path=path, params={"url": "nowhere"}))[0] == 404
    assert (await call(api, path=path))[0] == 400
    both = {"url": FOX.uri, "entry_id": "1"}
    assert (await call(api, path=path, params=both))[0] == 400


@pytest.mark.usefixtures("indexed")
async def test_another_organisation_finds_nothing(
    api: aiohttp.ClientSession, database: Database
) -> None:
    headers = bearer(await key_of(database, "other"))
    for mode in ("keyword", "vector", "hybrid"):
        asked = {"query": "fox", "mode": mode}
        assert (await call(api, asked, headers=headers))[1]["items"] == []
    params = {"url": FOX.uri}
    path = "/api/search/similar"
    assert (await call(api, path=path, params=params, headers=headers))[0] == 404


async def test_web_search_without_an_engine_finds_what_was_indexed(
    database: Database, organisation_id: OrganisationId, server_settings: Settings
) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX, DOG, PDF])
        files = await source(conn, organisation_id, kind="file")
        await index(conn, organisation_id, [Text("notes.txt", "fox notes")], source_id=files)
    async with WebSearch(server_settings.web_search, database, Searcher(Known())) as searching:
        for query, expected in [
            (WebQuery(words="fox hunt"), FOX.uri),
            (WebQuery(words="fox", types=("pdf",)), PDF.uri),
            (WebQuery(words="guard dog", hosts=("example.com",), time="qdr:d"), DOG.uri),
        ]:
            hits = await searching.search(organisation_id, query)
            assert hits[0].url == expected
            assert hits[0].content
            assert "notes.txt" not in {hit.url for hit in hits}
        nowhere = WebQuery(words="fox", not_hosts=("example.com",))
        assert await searching.search(organisation_id, nowhere) == []
        assert await searching.search(organisation_id, WebQuery(words="fox", source="news")) == []


async def test_the_command(
    trapline: Trapline, database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX, DOG, PDF])
    command = partial(trapline, DATABASE_URL=database.dsn)
    found = await command("search", "hunting", "fox", "--explain")
    assert found.status == 0, found.err
    assert found.out.startswith(" 1. Foxes\n    https://example.com/animals/fox\n")
    assert "keyword #1" in found.out
    as_json = (await command("search", "fox", "--type", "pdf", "--json")).json
    assert [one["uri"] for one in as_json["items"]] == [PDF.uri]
    assert "Nothing found." in (await command("search", "fox", "--path", "/none")).out
    assert (await command("search", " ")).status == 2
    assert (await command("search", "fox", "--site", "nowhere")).status == 3
    typo = await command("search", "gaurding", "--mode", "keyword")
    assert "searched for guard" in typo.err
