"""What is written of a text is written together, replaced together and searched by generation."""

import hashlib
from dataclasses import replace
from uuid import uuid4

import asyncpg
import numpy as np
import pytest

from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ModelMismatch
from trapline.knowledge import passage_index
from trapline.knowledge.chunking import passages
from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors, normalise
from trapline.knowledge.passage_index import IndexableText, IndexEntry, SourceGeneration
from trapline.model import OrganisationId, SourceId

MODEL = EmbeddingModel("small", 8, "1")


async def _store_one(
    conn: Connection, place: SourceGeneration, text: IndexableText, model: EmbeddingModel
) -> int:
    (entry_id,) = await passage_index.store_entries(conn, place, [text], model)
    return entry_id


async def test_a_text_is_written_with_all_that_search_reads(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        texts = [_text("a", "# Foxes\n\nThey run."), _text("b", "# Hunde\n\nSie laufen.", "de-AT")]
        entry_ids = await passage_index.store_entries(conn, place, texts, MODEL)
        rows = await conn.fetch(
            "SELECT e.id, e.language, c.words, c.headings, v.embedding::real[] AS numbers,"
            " v.entry_id FROM knowledge.entry e JOIN knowledge.chunk c ON c.entry_id = e.id"
            " JOIN knowledge.vector v ON v.chunk_id = c.id ORDER BY e.uri"
        )
        segments = await conn.fetch("SELECT language, texts FROM knowledge.segment")
    assert [row["id"] for row in rows] == entry_ids == [row["entry_id"] for row in rows]
    assert [row["language"] for row in rows] == ["en", "de"]
    assert [row["headings"] for row in rows] == [["Foxes"], ["Hunde"]]
    for row, text in zip(rows, texts, strict=True):
        assert np.allclose(row["numbers"], text.vectors[0], atol=1e-3)
    assert {(row["language"], row["texts"]) for row in segments} == {("en", 1), ("de", 1)}


async def test_a_text_that_comes_again_replaces_itself(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        first = await _store_one(conn, place, _text("a", "old"), MODEL)
        second = await _store_one(conn, place, _text("a", "new"), MODEL)
        assert first != second
        assert await _words(conn) == ["new"]
        assert await conn.fetchval("SELECT count(*) FROM knowledge.vector") == 1


async def test_empty_texts_and_none_at_all_are_no_trouble(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        assert await passage_index.store_entries(conn, place, [], MODEL) == []
        entry_id = await _store_one(conn, place, _text("a", "  "), MODEL)
        assert await conn.fetchval("SELECT id FROM knowledge.entry") == entry_id
        assert await _words(conn) == []


async def test_models_are_not_mixed_in_a_generation(
    database: Database, organisation_id: OrganisationId
) -> None:
    other = EmbeddingModel("large", 16)
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        await _store_one(conn, place, _text("a", "one"), MODEL)
        with pytest.raises(ModelMismatch, match="begun with small"):
            await _store_one(conn, place, _text("b", "two", model=other), other)
        with pytest.raises(ModelMismatch, match="do not fit"):
            await _store_one(conn, place, _text("b", "two", model=other), MODEL)
        renewed = EmbeddingModel("small", 8, "2")
        with pytest.raises(ModelMismatch):
            await _store_one(conn, place, _text("b", "two"), renewed)
        later = SourceGeneration(organisation_id, place.source_id, 1)
        await _store_one(conn, later, _text("b", "two", model=other), other)


async def test_a_swap_drops_the_older_generation_and_never_goes_back(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        for generation in (1, 2):
            at = SourceGeneration(organisation_id, place.source_id, generation)
            await _store_one(conn, at, _text("a", f"text {generation}"), MODEL)
        assert await passage_index.swap_generation(conn, place.source_id, 1)
        assert await _words(conn) == ["text 1", "text 2"]
        assert await passage_index.swap_generation(conn, place.source_id, 2)
        assert await _words(conn) == ["text 2"]
        assert not await passage_index.swap_generation(conn, place.source_id, 1)
        assert await conn.fetchval("SELECT generation FROM knowledge.source") == 2
        assert await conn.fetchval("SELECT count(*) FROM knowledge.generation") == 1


async def test_maintenance_drops_what_a_swap_left(
    database: Database, organisation_id: OrganisationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage_index, "_AT_ONCE", 2)
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        texts = [_text(str(number), f"text {number}") for number in range(5)]
        await passage_index.store_entries(conn, place, texts, MODEL)
        later = SourceGeneration(organisation_id, place.source_id, 1)
        await _store_one(conn, later, _text("a", "new"), MODEL)
        await passage_index.swap_generation(conn, place.source_id, 1)
    assert await passage_index.drop_older_generations(database) == 2
    assert await passage_index.drop_older_generations(database) == 1
    assert await passage_index.drop_older_generations(database) == 0
    async with database.system_tx() as conn:
        assert await _words(conn) == ["new"]


async def test_what_is_known_is_not_embedded_again(
    database: Database, organisation_id: OrganisationId
) -> None:
    text = _text("a", "the same words")
    hashes = [passage_index.fingerprint(None, text.passages[0]), b"\0" * 32]
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        await _store_one(conn, place, text, MODEL)
        known = await passage_index.reusable_vectors(conn, organisation_id, MODEL, hashes)
        assert list(known) == hashes[:1]
        assert np.allclose(known[hashes[0]], text.vectors[0], atol=1e-3)
        other = EmbeddingModel("large", 16)
        assert await passage_index.reusable_vectors(conn, organisation_id, other, hashes) == {}
        stranger = (await tenancy.create_organisation(conn, name="other")).id
        assert await passage_index.reusable_vectors(conn, stranger, MODEL, hashes) == {}


async def test_a_text_of_unknown_language_is_indexed_in_the_main_one(
    database: Database, organisation_id: OrganisationId
) -> None:
    """A title is too short to tell its language; it is found in any form of its words."""
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        known = _text("long", "The compilers of a language", "en")
        short = _text("short", "Recursive Compilers")
        short = replace(short, entry=replace(short.entry, language=None))
        await passage_index.store_entries(conn, place, [known], MODEL)
        await passage_index.store_entries(conn, place, [short], MODEL)
        languages = await conn.fetch("SELECT uri, language FROM knowledge.entry ORDER BY uri")
        terms = await conn.fetch("SELECT DISTINCT term FROM knowledge.posting")
    assert [tuple(row) for row in languages] == [("long", "en"), ("short", "en")]
    assert "compil" in {row["term"] for row in terms}
    assert "compilers" not in {row["term"] for row in terms}


async def test_texts_are_forgotten_by_name(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
        await passage_index.store_entries(
            conn, place, [_text("a", "one"), _text("b", "two")], MODEL
        )
        assert await passage_index.delete_entries(conn, place.source_id, ["a", "c"]) == 1
        assert await _words(conn) == ["two"]


async def test_nothing_is_left_of_a_batch_that_failed(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        place = await _place(conn, organisation_id)
    twice = [
        _text("a", "one"),
        IndexableText(IndexEntry(uri="b", content_hash=b"short"), [], _none()),
    ]
    with pytest.raises(asyncpg.CheckViolationError):
        await _store(database, place, twice)
    async with database.system_tx() as conn:
        for table in ("entry", "chunk", "vector", "segment", "posting", "generation", "model"):
            assert await conn.fetchval(f"SELECT count(*) FROM knowledge.{table}") == 0


async def _store(database: Database, place: SourceGeneration, texts: list[IndexableText]) -> None:
    async with database.system_tx() as conn:
        await passage_index.store_entries(conn, place, texts[:1], MODEL)
        await passage_index.store_entries(conn, place, texts[1:], MODEL)


def _none() -> Vectors:
    return np.zeros((0, MODEL.dimension), np.float32)


def _text(
    uri: str, markdown: str, language: str = "en", *, model: EmbeddingModel = MODEL
) -> IndexableText:
    cut = list(passages(markdown))
    chance = np.random.default_rng(len(markdown))
    vectors = normalise(chance.normal(size=(len(cut), model.dimension)).astype(np.float32))
    digest = hashlib.sha256(markdown.encode()).digest()
    entry = IndexEntry(uri=uri, content_hash=digest, language=language, markdown=markdown)
    return IndexableText(entry, cut, vectors)


async def _place(conn: Connection, organisation_id: OrganisationId) -> SourceGeneration:
    source_id = SourceId(uuid4())
    await conn.execute(
        "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
        " VALUES ($1, $2, 'file', 'a file', 'file:a')",
        source_id,
        organisation_id,
    )
    return SourceGeneration(organisation_id, source_id, 0)


async def _words(conn: Connection) -> list[str]:
    rows = await conn.fetch("SELECT words FROM knowledge.chunk ORDER BY id")
    return [row["words"] for row in rows]
