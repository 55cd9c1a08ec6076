"""The keyword index in Postgres: what is written is found, merged or not, by its owner alone."""

import hashlib
import random
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.knowledge.keyword import index_writer
from trapline.knowledge.keyword.index_writer import ChunkText
from trapline.knowledge.keyword.keyword_search import KeywordHit, KeywordIndex, KeywordQuery
from trapline.knowledge.sql import keyword as queries
from trapline.model import OrganisationId

WORDS = [f"word{number}" for number in range(300)]


async def test_what_is_indexed_is_found(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        ids = await _index(
            conn, organisation_id, "en", ["Foxes are running", "A lazy dog", "Nothing"]
        )
    assert await _found(database, organisation_id, "the run of a fox") == [ids[0]]
    assert await _found(database, organisation_id, "dogs") == [ids[1]]
    assert await _found(database, organisation_id, "cat") == []
    assert await _found(database, organisation_id, "the of and") == []
    assert await _found(database, organisation_id, "") == []


async def test_every_language_is_searched_by_its_own_rules(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        (german,) = await _index(conn, organisation_id, "de", ["Die Häuser der Stadt"])
        (english,) = await _index(conn, organisation_id, "en", ["The die was cast in the city"])
    assert await _found(database, organisation_id, "Haus") == [german]
    # A stop word in German, a word in English.
    assert await _found(database, organisation_id, "die") == [english]


async def test_a_text_of_no_language_gains_nothing_by_stop_words(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        english = await _index(
            conn,
            organisation_id,
            "en",
            ["How modules are found: the search for modules", *["Other words of modules"] * 20],
        )
        await _index(conn, organisation_id, "xx", ["how they are when the of a them"])
    asked = "how are modules found when they are sought by the machine"
    assert (await _found(database, organisation_id, asked))[0] == english[0]
    # "they" is nowhere in its form, and yet no misspelling: English has it everywhere.
    async with database.tenant_tx(organisation_id) as conn:
        found = await KeywordIndex().search(conn, organisation_id, KeywordQuery("they modules"))
    assert not found.corrected


async def test_merging_changes_no_rank(database: Database, organisation_id: OrganisationId) -> None:
    chance = random.Random(7)
    async with database.system_tx() as conn:
        for _ in range(9):
            texts = [
                " ".join(["apple", *chance.choices(WORDS[: 5 + n * 3], k=12)]) for n in range(90)
            ]
            await _index(conn, organisation_id, "en", texts)
    asked = [" ".join(["apple", *chance.choices(WORDS[:60], k=3)]) for _ in range(20)]
    before = [await _hits(database, organisation_id, query) for query in asked]
    assert await index_writer.merge_segments(database) == 1
    assert await index_writer.merge_segments(database) == 0
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.segment") == 1
        assert await conn.fetchval("SELECT max(part) FROM knowledge.posting") >= 1
    after = [await _hits(database, organisation_id, query) for query in asked]
    assert [[round(hit.score, 4) for hit in hits] for hits in after] == [
        [round(hit.score, 4) for hit in hits] for hits in before
    ]
    assert all(hits for hits in after)


async def test_a_word_that_the_query_repeats_counts_more(
    database: Database, organisation_id: OrganisationId
) -> None:
    """Also in another form: a question about compilers that names one file is about compilers."""
    async with database.system_tx() as conn:
        compiler, file = await _index(conn, organisation_id, "en", ["a compiler", "a file"])
    for words in ("file compilers compiler", "compiler file compilers"):
        assert await _found(database, organisation_id, words) == [compiler, file]
    for words in ("files compiler file", "compiler file files"):
        assert await _found(database, organisation_id, words) == [file, compiler]


async def test_a_merge_during_a_search_hides_nothing(
    database: Database, organisation_id: OrganisationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments go away after they were listed: what is in the new one is found all the same."""
    async with database.system_tx() as conn:
        ids = [
            (await _index(conn, organisation_id, "en", [f"apple pear{number}"]))[0]
            for number in range(8)
        ]
    listed = queries.list_segments
    calls = 0

    async def then_merge(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        rows = await listed(*args, **more)
        await index_writer.merge_segments(database)
        return rows

    monkeypatch.setattr(queries, "list_segments", then_merge)
    assert sorted(await _found(database, organisation_id, "apple")) == ids
    assert calls == 2


async def test_what_is_remembered_is_not_read_again(
    database: Database, organisation_id: OrganisationId
) -> None:
    """Not even that a word is nowhere; and what comes later is a segment of its own."""
    async with database.system_tx() as conn:
        ids = await _index(conn, organisation_id, "en", ["apple"] * 1000)
    index = KeywordIndex()
    for expected in (3, 0):
        before = index.cache.reads
        async with database.tenant_tx(organisation_id) as conn:
            query = KeywordQuery("apple pear", 2000, tolerant=False)
            found = await index.search(conn, organisation_id, query)
        assert len(found.hits) == len(ids)
        assert index.cache.reads - before == expected
    async with database.system_tx() as conn:
        new = await _index(conn, organisation_id, "en", ["pear"])
    async with database.tenant_tx(organisation_id) as conn:
        found = await index.search(conn, organisation_id, KeywordQuery("pear"))
    assert [hit.chunk_id for hit in found.hits] == new


async def test_chunks_that_are_gone_leave_when_segments_merge(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        ids = [
            (await _index(conn, organisation_id, "en", [f"apple pear{number}"]))[0]
            for number in range(8)
        ]
        await conn.execute("DELETE FROM knowledge.chunk WHERE id = ANY($1)", ids[:3])
    await index_writer.merge_segments(database)
    assert sorted(await _found(database, organisation_id, "apple")) == ids[3:]
    async with database.system_tx() as conn:
        assert not await conn.fetchval("SELECT 1 FROM knowledge.posting WHERE term = 'pear1'")


async def test_segments_of_which_much_is_gone_are_written_again(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        half = await _index(conn, organisation_id, "en", [f"apple pear{n}" for n in range(10)])
        most = await _index(conn, organisation_id, "en", [f"apple plum{n}" for n in range(10)])
        none = await _index(conn, organisation_id, "en", ["apple"] * 3)
        gone = [*half[:5], *most[:1], *none]
        await conn.execute("DELETE FROM knowledge.chunk WHERE id = ANY($1)", gone)
    assert await index_writer.compact_segments(database) == 2
    assert await index_writer.compact_segments(database) == 0
    async with database.system_tx() as conn:
        rows = await conn.fetch("SELECT texts FROM knowledge.segment ORDER BY texts")
        assert [row["texts"] for row in rows] == [5, 10]
        assert not await conn.fetchval("SELECT 1 FROM knowledge.posting WHERE term = 'pear1'")
    assert set(half[5:]) <= set(await _found(database, organisation_id, "apple"))


async def test_only_wanted_chunks_are_ranked(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        ids = await _index(conn, organisation_id, "en", ["apple"] * 5 + ["apple apple"] * 5)
    among = np.array(ids[2:4], np.int64)
    async with database.tenant_tx(organisation_id) as conn:
        query = KeywordQuery("apple", most=3, allowed=among)
        hits = (await KeywordIndex().search(conn, organisation_id, query)).hits
    assert [hit.chunk_id for hit in hits] == ids[2:4]


async def test_nobody_finds_or_reads_anothers(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, name="other")).id
        await _index(conn, other, "en", ["secret apple"] * 3)
        (ours,) = await _index(conn, organisation_id, "en", ["apple"])
    index = KeywordIndex()
    assert await _found(database, organisation_id, "apple secret", index) == [ours]
    async with database.tenant_tx(organisation_id) as conn:
        # Asked for by name, the other's rows are not there, and count in no statistic.
        query = KeywordQuery("secret")
        assert (await index.search(conn, other, query)).hits == []
        for table in ("chunk", "segment", "posting"):
            rows = await conn.fetch(f"SELECT organisation_id FROM knowledge.{table}")
            assert {row["organisation_id"] for row in rows} == {organisation_id}


@pytest.mark.parametrize(
    "query", ["x" * 10_000, "a OR b AND (c", '"quoted', "\\ ' % _", "😀 \u0000"]
)
async def test_any_words_are_a_query(
    database: Database, organisation_id: OrganisationId, query: str
) -> None:
    async with database.system_tx() as conn:
        await _index(conn, organisation_id, "en", ["plain text"])
    assert await _found(database, organisation_id, query) == []


async def _index(
    conn: Connection, organisation_id: OrganisationId, language: str, texts: list[str]
) -> list[int]:
    source = uuid4()
    await conn.execute(
        "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
        " VALUES ($1, $2, 'file', 'a file', 'file:a')",
        source,
        organisation_id,
    )
    entry = await conn.fetchval(
        "INSERT INTO knowledge.entry (organisation_id, source_id, generation, uri, content_hash)"
        " VALUES ($1, $2, 0, 'file:a', $3) RETURNING id",
        organisation_id,
        source,
        hashlib.sha256(b"a").digest(),
    )
    rows = await conn.fetch(
        "INSERT INTO knowledge.chunk (organisation_id, source_id, entry_id, ordinal, starts_at,"
        " ends_at, headings, words, tokens, hash) SELECT $1, $2, $3, n, 0, 1, '{}', t, 1, $5"
        " FROM unnest($4::text[]) WITH ORDINALITY AS new (t, n) RETURNING id",
        organisation_id,
        source,
        entry,
        texts,
        hashlib.sha256(b"a").digest(),
    )
    ids = [row["id"] for row in rows]
    words = {chunk: ChunkText(entry, text) for chunk, text in zip(ids, texts, strict=True)}
    await index_writer.add_segment(conn, organisation_id, language, words)
    return ids


async def _hits(
    database: Database,
    organisation_id: OrganisationId,
    words: str,
    index: KeywordIndex | None = None,
) -> list[KeywordHit]:
    async with database.tenant_tx(organisation_id) as conn:
        query = KeywordQuery(words, most=20)
        return (await (index or KeywordIndex()).search(conn, organisation_id, query)).hits


async def _found(
    database: Database,
    organisation_id: OrganisationId,
    words: str,
    index: KeywordIndex | None = None,
) -> list[int]:
    return [hit.chunk_id for hit in await _hits(database, organisation_id, words, index)]
