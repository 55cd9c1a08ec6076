"""Vectors in Qdrant: what is copied, what a search makes of it, and what happens when it is away."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from qdrant_client.http.models import PointStruct

from tests.support.qdrant_server import FakeQdrant
from tests.support.search_corpus import STATIC, Known, Text, index
from tests.support.settings import change_settings
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.knowledge import filters, passage_index, qdrant_mirror, retrievers, vector_indexes
from trapline.knowledge.filters import SearchFilter
from trapline.knowledge.qdrant import Qdrant, match
from trapline.knowledge.qdrant_mirror import QdrantMirror, collection_of
from trapline.knowledge.search import Searcher, SearchQuery, SearchResults
from trapline.model import OrganisationId

FOX = Text("https://example.com/fox", "Foxes hunt at night and run fast.", "Foxes")
DOG = Text("https://example.com/dog", "Dogs guard the house and bark.", "Dogs")
TAX = Text("https://example.com/tax", "Income is taxed every year.", "Taxes")


@pytest.fixture
async def server() -> AsyncIterator[FakeQdrant]:
    async with FakeQdrant(key="secret").running() as running:
        yield running


@pytest.fixture
async def qdrant(server: FakeQdrant) -> AsyncIterator[Qdrant]:
    client = Qdrant(server.url, "secret", 5.0)
    yield client
    await client.aclose()


async def search(
    database: Database, owner: OrganisationId, searcher: Searcher, words: str, **more: object
) -> SearchResults:
    query = SearchQuery(words=words, mode="vector", **more)  # type: ignore[arg-type]
    async with database.tenant_tx(owner) as conn:
        return await searcher.search(conn, owner, query)


async def collection(database: Database) -> str:
    async with database.system_tx() as conn:
        return collection_of(await conn.fetchval("SELECT id FROM knowledge.mirror"), STATIC.model)


async def test_what_was_there_and_what_comes_is_copied(
    database: Database,
    organisation_id: OrganisationId,
    qdrant: Qdrant,
    server: FakeQdrant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(qdrant_mirror, "_AT_ONCE", 2)
    async with database.system_tx() as conn:
        ours = await index(conn, organisation_id, [FOX, DOG, TAX])
    tend = QdrantMirror(qdrant).tend
    assert await tend(database) == 3
    assert await tend(database) == 0
    name = await collection(database)
    assert await qdrant.count(name) == 3
    searcher = Searcher(Known(), qdrant=qdrant)
    found = await search(database, organisation_id, searcher, "foxes at night")
    assert found.items[0].uri == FOX.uri
    assert len(found.items) == 3
    assert found.warnings == ()
    assert any("points/query" in call for call in server.calls)
    # A text is replaced, one goes, one comes: first PostgreSQL alone knows, then both.
    async with database.system_tx() as conn:
        changed = Text(FOX.uri, "The wolf howls.", "Wolves")
        await index(conn, organisation_id, [changed, Text("new", "A cat sleeps.")], source_id=ours)
        await passage_index.delete_entries(conn, ours, [DOG.uri])
    for _ in range(2):
        for words, expected in (("howling wolf", "The wolf howls."), ("cat", "A cat sleeps.")):
            found = await search(database, organisation_id, searcher, words)
            assert found.items[0].words == expected
            assert len(found.items) == 3
        await tend(database)
    assert await qdrant.count(name) == 3
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.mirror_change") == 0
        await conn.execute("DELETE FROM knowledge.source WHERE id = $1", ours)
    await tend(database)
    assert await qdrant.count(name) == 0


async def test_the_copy_alone_shows_nothing(
    database: Database, organisation_id: OrganisationId, qdrant: Qdrant, server: FakeQdrant
) -> None:
    """A point whose text is gone, or is another organisation's whatever the point says, is not shown."""
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, name="other")).id
        await index(conn, other, [FOX])
        await index(conn, organisation_id, [TAX, DOG])
    await QdrantMirror(qdrant).tend(database)
    name = await collection(database)
    owners = [match("organisation", [str(one)]) for one in (other, organisation_id)]
    assert [await qdrant.count(name, [one]) for one in owners] == [1, 2]
    # Every point says that it is ours, and one is of no text at all.
    points, _ = server.store.scroll(name, with_vectors=True)
    ours = {"organisation": str(organisation_id)}
    server.store.set_payload(name, ours, [point.id for point in points])
    server.store.upsert(name, [PointStruct(id=999_999, vector=points[0].vector, payload=ours)])
    searcher = Searcher(Known(), qdrant=qdrant)
    found = await search(database, organisation_id, searcher, "foxes at night")
    assert {one.uri for one in found.items} == {TAX.uri, DOG.uri}
    found = await search(database, other, searcher, "foxes at night")
    assert [one.uri for one in found.items] == []


async def test_filters_are_kept(
    database: Database,
    organisation_id: OrganisationId,
    qdrant: Qdrant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filters, "FEW_CHUNKS", 0)
    monkeypatch.setattr(retrievers, "FEW_CHUNKS", 10_000)
    async with database.system_tx() as conn:
        ours = await index(conn, organisation_id, [FOX])
        await index(
            conn,
            organisation_id,
            [
                Text("de/hund", "Der Hund bellt.", language="de"),
                Text("a.pdf", "Dogs", content_type="application/pdf"),
            ],
        )
    await QdrantMirror(qdrant).tend(database)
    searcher = Searcher(Known(), qdrant=qdrant)
    for wanted, expected in (
        (SearchFilter(sources=(ours,)), {FOX.uri}),
        (SearchFilter(languages=("de-AT",)), {"de/hund"}),
        (SearchFilter(types=("pdf",)), {"a.pdf"}),
        (SearchFilter(path="de/"), {"de/hund"}),
        (SearchFilter(hosts=("example.com",)), {FOX.uri}),
        (SearchFilter(types=("pdf",), languages=("de",)), set()),
    ):
        found = await search(database, organisation_id, searcher, "dog", filters=wanted)
        assert {one.uri for one in found.items} == expected, wanted


async def test_while_it_is_away(
    database: Database, organisation_id: OrganisationId, qdrant: Qdrant, server: FakeQdrant
) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX, TAX])
    await QdrantMirror(qdrant).tend(database)
    server.down = True
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [DOG])
    with pytest.raises(Unavailable, match="503"):
        await QdrantMirror(qdrant).tend(database)
    found = await search(database, organisation_id, Searcher(Known(), qdrant=qdrant), "barking dog")
    assert found.items[0].uri == DOG.uri
    assert "in PostgreSQL" in found.warnings[0]
    strict = Searcher(Known(), qdrant=qdrant, fallback=False)
    with pytest.raises(Unavailable, match="Qdrant answered 503"):
        await search(database, organisation_id, strict, "dog")
    nobody = Qdrant("http://127.0.0.1:9", None, 1.0)
    with pytest.raises(Unavailable, match="cannot be reached"):
        await nobody.nearest("x", [1.0], [], 1)
    await nobody.aclose()
    # Nothing was lost meanwhile.
    server.down = False
    assert await QdrantMirror(qdrant).tend(database) == 1
    assert await qdrant.count(await collection(database)) == 3


async def test_a_wrong_key_is_told(qdrant: Qdrant, server: FakeQdrant) -> None:
    wrong = Qdrant(server.url, "wrong", 5.0)
    with pytest.raises(Unavailable, match="401"):
        await wrong.collections("")
    await wrong.aclose()


async def test_a_copy_that_is_not_whole_or_elsewhere_is_not_searched(
    database: Database, organisation_id: OrganisationId, qdrant: Qdrant, server: FakeQdrant
) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX])
    await QdrantMirror(qdrant).tend(database)
    searcher = Searcher(Known(), qdrant=qdrant)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE knowledge.mirror SET whole_at = NULL")
    server.calls.clear()
    assert (await search(database, organisation_id, searcher, "fox")).items
    async with database.system_tx() as conn:
        await conn.execute("UPDATE knowledge.mirror SET whole_at = now(), url = 'elsewhere'")
    assert (await search(database, organisation_id, searcher, "fox")).items
    assert server.calls == []
    # With another URL the copy is begun anew, under another name.
    before = await collection(database)
    assert await QdrantMirror(qdrant).tend(database) == 1
    assert await collection(database) != before


async def test_without_a_qdrant_nothing_is_noted(
    database: Database,
    organisation_id: OrganisationId,
    qdrant: Qdrant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted = "SELECT count(*) FROM knowledge.mirror_change"
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX])
        assert await conn.fetchval(noted) == 0
    await QdrantMirror(qdrant).tend(database)
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [DOG])
        assert await conn.fetchval(noted) == 1
    # Somebody else may tend it still.
    assert await QdrantMirror(None).tend(database) == 0
    monkeypatch.setattr(qdrant_mirror, "_ABANDONED_AFTER", timedelta(0))
    assert await QdrantMirror(None).tend(database) == 1
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [TAX])
        assert await conn.fetchval(noted) == 0
        assert await conn.fetchval("SELECT count(*) FROM knowledge.mirror") == 0
    # Later it is filled again with all.
    assert await QdrantMirror(qdrant).tend(database) == 3


async def test_indexes_are_kept_only_where_they_may_be_needed(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [Text(f"t{n}", f"apple {n}") for n in range(12)])
    assert await vector_indexes.maintain_indexes(database, many=10) == 1
    elsewhere = change_settings(
        database.settings, {"qdrant_url": "http://127.0.0.1:9", "qdrant_fallback": False}
    )
    there = replace(database, settings=elsewhere)
    assert await vector_indexes.maintain_indexes(there, many=10) == 1
    assert await vector_indexes.maintain_indexes(there, many=10) == 0
