"""Search over real rows: what is found, by which leg, under which filter, and by whom."""

from datetime import UTC, datetime
from uuid import uuid4

import numpy as np
import pytest

from tests.support.search_corpus import STATIC, Known, Letters, Text, index, source
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import InvalidInput, NotFound
from trapline.knowledge import filters, passage_index, retrievers, vector_indexes
from trapline.knowledge.filters import SearchFilter
from trapline.knowledge.search import Searcher, SearchQuery, SearchResults, SimilarTo
from trapline.knowledge.sql import search as queries
from trapline.measure import Recorder
from trapline.model import ApplicationId, OrganisationId, PageId, SiteId

SITE = "https://example.com"
FOX = Text(f"{SITE}/animals/fox", "# The fox\n\nFoxes hunt at night and run fast.", "Foxes")
DOG = Text(f"{SITE}/animals/dog", "# The dog\n\nDogs guard the house and bark.", "Dogs")
TAX = Text(f"{SITE}/money/tax", "# Taxes\n\nIncome is taxed every year.", "Taxes")


async def test_words_and_meaning_find_the_page(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _store(database, organisation_id, [FOX, DOG, TAX])
    found = await _search(database, organisation_id, SearchQuery(words="running foxes"))
    first = found.items[0]
    assert first.uri == FOX.uri
    assert first.reasons["keyword"].rank == 1
    assert first.reasons["vector"].rank == 1
    assert set(found.milliseconds) == {"bm25", "embedding", "vector"}
    by_words = await _search(database, organisation_id, SearchQuery(words="bark", mode="keyword"))
    assert [one.uri for one in by_words.items] == [DOG.uri]
    assert set(by_words.items[0].reasons) == {"keyword"}
    by_meaning = await _search(
        database, organisation_id, SearchQuery(words="salary", mode="vector")
    )
    assert by_meaning.items[0].uri == TAX.uri
    assert len(by_meaning.items) == 3


async def test_meaning_counts_by_what_made_the_vectors(
    database: Database, organisation_id: OrganisationId
) -> None:
    """Less than words with the light model, as much with others, and as asked in any case."""
    letters = Letters("abcdefgh")
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, name="other")).id
        await index(conn, organisation_id, [Text("a", "fox")])
        await index(conn, other, [Text("a", "fade")], embedder=letters)
    known = Known((STATIC, letters))
    # No text has these words: what is found is found by meaning alone.
    for owner, words, by_meaning in ((organisation_id, "wolf", 0.3), (other, "bad", 0.5)):
        query = SearchQuery(words=words, tolerant=False)
        assert (await _search(database, owner, query, known)).items[0].score == by_meaning
        given = SearchQuery(words=words, tolerant=False, vector_weight=0.25)
        assert (await _search(database, owner, given, known)).items[0].score == 0.25
    both = await _search(database, other, SearchQuery(words="fade"), known)
    assert both.items[0].score == 1.0


async def test_what_is_shown_of_a_result(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _store(database, organisation_id, [FOX])
    found = await _search(
        database, organisation_id, SearchQuery(words="hunting", granularity="chunk")
    )
    one = found.items[0]
    marked = [one.snippet.text[start:end] for start, end in one.snippet.marks]
    assert marked == ["hunt"]
    assert (one.title, one.headings, one.language) == ("Foxes", ("The fox",), "en")
    assert FOX.markdown[one.starts_at : one.ends_at].endswith("run fast.")


async def test_a_word_that_nobody_wrote_is_taken_for_one_like_it(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _store(database, organisation_id, [FOX, DOG, Text("a", "Photosynthesis in green leaves")])
    for typo, uri in [("hosue", DOG.uri), ("gaurd", DOG.uri), ("fotosynthesis", None)]:
        found = await _search(database, organisation_id, SearchQuery(words=typo, mode="keyword"))
        assert [one.uri for one in found.items] == ([] if uri is None else [uri]), typo
    found = await _search(
        database, organisation_id, SearchQuery(words="phtosynthesys", mode="keyword")
    )
    assert found.items[0].uri == "a"
    assert found.corrected == {"phtosynthesys": ("photosynthesi",)}
    assert found.items[0].snippet.marks
    strict = SearchQuery(words="hosue", mode="keyword", tolerant=False)
    assert (await _search(database, organisation_id, strict)).items == []


@pytest.mark.parametrize(("few", "texts"), [(10_000, 20_000), (0, 20_000), (0, 0)])
async def test_filters(
    database: Database,
    organisation_id: OrganisationId,
    monkeypatch: pytest.MonkeyPatch,
    few: int,
    texts: int,
) -> None:
    """Of few passages, each is looked at; few texts are listed; many are checked as they come."""
    monkeypatch.setattr(filters, "FEW_CHUNKS", few)
    monkeypatch.setattr(filters, "MOST_TEXTS", texts)
    site, application = SiteId(uuid4()), ApplicationId(uuid4())
    late = datetime(2026, 6, 1, tzinfo=UTC)
    async with database.system_tx() as conn:
        await conn.execute(
            "INSERT INTO store.site (id, organisation_id, name, base_url)"
            " VALUES ($1, $2, 'a', 'https://a.org/')",
            site,
            organisation_id,
        )
        await conn.execute(
            "INSERT INTO knowledge.application (id, organisation_id, name) VALUES ($1, $2, 'app')",
            application,
            organisation_id,
        )
        early = Text(
            "https://other.org/x_1/apple", "apple", dated_at=datetime(2020, 1, 1, tzinfo=UTC)
        )
        ours = await source(conn, organisation_id, site_id=site, application_id=application)
        await index(conn, organisation_id, [early], source_id=ours)
        files = await source(conn, organisation_id, kind="file")
        german = Text("papers/a.pdf", "der Apfel apple", None, "de-AT", "application/pdf", late)
        await index(conn, organisation_id, [german], source_id=files)
        for number in range(40):
            text = Text(f"{SITE}/fill/{number}", f"apple {number}", dated_at=late)
            await index(conn, organisation_id, [text])
    a, b = {early.uri}, {german.uri}
    for wanted, expected in [
        (SearchFilter(sources=(ours,)), a),
        (SearchFilter(sites=(site,)), a),
        (SearchFilter(applications=(application,)), a),
        (SearchFilter(kinds=("file",)), b),
        (SearchFilter(languages=("de",)), b),
        (SearchFilter(types=("application/pdf",)), b),
        (SearchFilter(types=("pdf",)), b),
        (SearchFilter(types=("application/",)), b),
        (SearchFilter(types=("application/p_f",)), set()),
        (SearchFilter(hosts=("OTHER.org",)), a),
        (SearchFilter(not_hosts=("example.com", "")), a),
        (SearchFilter(path="/x_"), a),
        (SearchFilter(path="/x%"), set()),
        (SearchFilter(until=late), a),
        (SearchFilter(since=late, kinds=("file", "site")), b),
        (SearchFilter(sources=(ours,), languages=("de",)), set()),
    ]:
        for mode in ("hybrid", "keyword", "vector"):
            query = SearchQuery(words="apple", mode=mode, filters=wanted, most=5)
            found = await _search(database, organisation_id, query)
            assert {one.uri for one in found.items} == expected, (wanted, mode)


async def test_how_wide_a_filter_is_is_guessed_well(
    database: Database, organisation_id: OrganisationId
) -> None:
    """By texts, whatever the planner thinks of a join: it once took 0.5 % for an eighth of all."""
    many = [Text(f"{SITE}/{n}", f"apple {n}") for n in range(190)]
    few = [Text(f"{SITE}/{n}.pdf", f"apple {n}", content_type="application/pdf") for n in range(10)]
    async with database.system_tx() as conn:
        await index(conn, organisation_id, many)
        ours = await index(conn, organisation_id, few)
    async with database.owner() as owner:
        await owner.execute("ANALYZE knowledge.entry, knowledge.chunk")
    async with database.tenant_tx(organisation_id) as conn:
        for wanted, texts in (
            (SearchFilter(), 200),
            (SearchFilter(types=("application/pdf",)), 10),
            (SearchFilter(types=("text/html",)), 190),
            (SearchFilter(sources=(ours,)), 10),
            (SearchFilter(kinds=("file",)), 1),
        ):
            width = await filters.FilterEstimates().of(conn, organisation_id, wanted)
            assert width.texts == pytest.approx(texts, rel=0.2, abs=1), wanted
            assert width.share == pytest.approx(texts / 200, rel=0.2, abs=0.01), wanted


async def test_how_wide_a_filter_is_may_be_out_of_date(
    database: Database, organisation_id: OrganisationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was narrow a moment ago is listed though it is wide, and nothing is missed."""
    monkeypatch.setattr(filters, "FEW_CHUNKS", 5)
    searcher = Searcher(Known())
    wanted = SearchFilter(path="a/")
    for count in (1, 4, 60):
        monkeypatch.setattr(filters, "MOST_TEXTS", count // 2)
        texts = [Text(f"a/{count}/{n}", f"apple {count} {n}") for n in range(count)]
        await _store(database, organisation_id, [*texts, Text(f"b/{count}", "apple")])
        for mode in ("keyword", "vector"):
            query = SearchQuery(words="apple", mode=mode, filters=wanted, most=100)
            async with database.tenant_tx(organisation_id) as conn:
                found = await searcher.search(conn, organisation_id, query)
            assert {text.uri for text in texts} <= {one.uri for one in found.items}
            assert not any(one.uri.startswith("b/") for one in found.items)


async def test_only_the_searched_generation_is_found(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        ours = await index(conn, organisation_id, [Text("a", "old apple")])
        await index(conn, organisation_id, [Text("a", "new apple")], source_id=ours, generation=1)
    for words in ("old apple", "new apple"):
        found = await _search(database, organisation_id, SearchQuery(words=words))
        assert [one.words for one in found.items] == ["old apple"]
    async with database.system_tx() as conn:
        await passage_index.swap_generation(conn, ours, 1)
    for mode in ("keyword", "vector"):
        found = await _search(database, organisation_id, SearchQuery(words="old apple", mode=mode))
        assert [one.words for one in found.items] == ["new apple"]


async def test_while_a_model_is_swapped_both_are_searched(
    database: Database, organisation_id: OrganisationId
) -> None:
    other = Letters("abcdefgh")
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [FOX])
        await index(conn, organisation_id, [DOG], embedder=other)
    both = Known((STATIC, other))
    found = await _search(
        database, organisation_id, SearchQuery(words="animal", mode="vector"), both
    )
    assert {one.uri for one in found.items} == {FOX.uri, DOG.uri}
    assert found.warnings == ()
    # Where one of them is not set up, its texts are found by their words, and that is said.
    found = await _search(database, organisation_id, SearchQuery(words="dogs guard"))
    assert DOG.uri in {one.uri for one in found.items}
    assert "letters-abcdefgh" in found.warnings[0]


async def test_the_same_text_is_shown_once(
    database: Database, organisation_id: OrganisationId
) -> None:
    copies = [Text(f"{SITE}/{number}", FOX.markdown, "Foxes") for number in range(3)]
    await _store(database, organisation_id, [*copies, DOG])
    for granularity in ("page", "chunk"):
        query = SearchQuery(words="fox", mode="keyword", granularity=granularity)
        (only,) = (await _search(database, organisation_id, query)).items
        assert {only.uri, *only.duplicates} == {copy.uri for copy in copies}
    query = SearchQuery(words="fox", mode="keyword", collapse=False)
    assert len((await _search(database, organisation_id, query)).items) == 3


async def test_pages_and_passages(database: Database, organisation_id: OrganisationId) -> None:
    long = "\n\n".join(f"## Part {n}\n\n" + f"An apple of kind number {n}. " * 20 for n in range(4))
    await _store(database, organisation_id, [Text("long", long), Text("short", "no fruit here")])
    by_page = await _search(database, organisation_id, SearchQuery(words="apple", mode="keyword"))
    assert [(one.uri, one.passages) for one in by_page.items] == [("long", 4)]
    query = SearchQuery(words="apple", mode="keyword", granularity="chunk")
    by_chunk = await _search(database, organisation_id, query)
    assert len(by_chunk.items) == 4


async def test_pages_of_results_follow_each_other(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _store(
        database, organisation_id, [Text(f"t{n}", f"apple {'pear ' * n}") for n in range(25)]
    )
    for mode in ("hybrid", "keyword", "vector"):
        seen: list[str] = []
        after = None
        while True:
            query = SearchQuery(words="apple pear", mode=mode, most=10, after=after)
            found = await _search(database, organisation_id, query)
            seen += [one.uri for one in found.items]
            if not found.more:
                break
            after = (found.items[-1].score, found.items[-1].chunk_id)
        assert len(seen) == len(set(seen)) == 25


async def test_similar_pages(database: Database, organisation_id: OrganisationId) -> None:
    page_id = uuid4()
    wolf = Text(f"{SITE}/wolf", "Wolves hunt in packs at night.", "Wolves", page_id=page_id)
    await _store(database, organisation_id, [FOX, TAX, wolf])
    for to in (SimilarTo(page_id=PageId(page_id)), SimilarTo(uri=wolf.uri)):
        async with database.tenant_tx(organisation_id) as conn:
            found = await Searcher(Known()).similar(conn, organisation_id, to)
        assert [one.uri for one in found.items] == [FOX.uri, TAX.uri]
    async with database.tenant_tx(organisation_id) as conn:
        with pytest.raises(NotFound):
            await Searcher(Known()).similar(conn, organisation_id, SimilarTo(uri="nowhere"))


@pytest.mark.parametrize(
    "words",
    [
        "the of and",
        "?!",
        "apple " * 1_600,
        '"apple',
        "apple OR (pear AND",
        "日本語 苹果",
        "😀",
        "a'b_c",
    ],
)
async def test_any_words_are_answered(
    database: Database, organisation_id: OrganisationId, words: str
) -> None:
    await _store(database, organisation_id, [FOX, Text("a", "apple 日本語")])
    for mode in ("hybrid", "keyword", "vector"):
        found = await _search(database, organisation_id, SearchQuery(words=words, mode=mode))
        assert len(found.items) <= 2
    if "apple" in words:
        assert found.items[0].uri == "a"


def test_what_cannot_be_asked_is_said() -> None:
    for wrong in (
        {"words": "  "},
        {"words": "x" * 20_001},
        {"words": "x", "most": 0},
        {"words": "x", "keyword_weight": -1.0},
        {"words": "x", "keyword_weight": 0.0, "vector_weight": 0.0},
        {"words": "x", "vector_weight": float("nan")},
    ):
        with pytest.raises(InvalidInput):
            SearchQuery(**wrong)  # type: ignore[arg-type]


async def test_every_step_is_measured(database: Database, organisation_id: OrganisationId) -> None:
    await _store(database, organisation_id, [FOX])
    recorder = Recorder()
    async with database.tenant_tx(organisation_id) as conn:
        await Searcher(Known(), recorder).search(conn, organisation_id, SearchQuery(words="fox"))
    await recorder.flush(database)
    async with database.system_tx() as conn:
        rows = await conn.fetch(
            "SELECT * FROM measure.operation WHERE organisation_id = $1", organisation_id
        )
    assert {row["type"] for row in rows} == {"bm25", "embedding", "vector"}


async def test_only_stop_words_are_told(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _store(database, organisation_id, [FOX])
    found = await _search(database, organisation_id, SearchQuery(words="the of", mode="keyword"))
    assert "stop words" in found.warnings[0]


async def test_an_empty_index_finds_nothing(
    database: Database, organisation_id: OrganisationId
) -> None:
    assert (await _search(database, organisation_id, SearchQuery(words="fox"))).items == []


@pytest.mark.parametrize("listed", [0, 20_000])
async def test_an_index_is_built_used_and_dropped(
    database: Database,
    organisation_id: OrganisationId,
    monkeypatch: pytest.MonkeyPatch,
    listed: int,
) -> None:
    """The plan walks the organisation's own graph; what it finds is what comparing all finds."""
    monkeypatch.setattr(filters, "MOST_TEXTS", listed)
    monkeypatch.setattr(filters, "FEW_CHUNKS", 0)
    letters = Letters("abcdefghijklmnop")
    chance = np.random.default_rng(1)
    texts = [
        Text(f"{SITE}/{n % 2}/{n}", "".join(chance.choice(list(letters.letters), 30)))
        for n in range(400)
    ]
    async with database.system_tx() as conn:
        ours = await index(conn, organisation_id, texts, embedder=letters)
    query = SearchQuery(words="abcabdgg", mode="vector", most=20)
    halved = SearchQuery(words="abcabdgg", mode="vector", most=20, filters=SearchFilter(path="/1/"))
    exact = [
        [one.uri for one in (await _search(database, organisation_id, q, Known((letters,)))).items]
        for q in (query, halved)
    ]
    assert await vector_indexes.maintain_indexes(database, many=100) == 1
    assert await vector_indexes.maintain_indexes(database, many=100) == 0
    async with database.owner() as owner:
        await owner.execute("ANALYZE knowledge.vector, knowledge.entry, knowledge.source")
        (name,) = [
            row["name"]
            for row in await owner.fetch(
                "SELECT relname AS name FROM pg_class WHERE relname LIKE 'vector_hnsw%'"
            )
        ]
        for q, expected in zip((query, halved), exact, strict=True):
            before = await _scans(database, name)
            found = await _search(database, organisation_id, q, Known((letters,)))
            got = [one.uri for one in found.items]
            assert len(set(got) & set(expected)) >= 18
            assert await _scans(database, name) > before
    async with database.system_tx() as conn:
        await passage_index.delete_entries(conn, ours, [text.uri for text in texts])
    assert await vector_indexes.maintain_indexes(database, many=100) == 1


async def test_what_is_found_is_checked_one_by_one(
    database: Database, organisation_id: OrganisationId
) -> None:
    """A filter looks at the texts of the candidates alone, however many texts there are."""
    await _store(database, organisation_id, [Text(f"t{n}", f"apple {n}") for n in range(500)])
    async with database.owner() as owner:
        await owner.execute("ANALYZE knowledge.vector, knowledge.entry, knowledge.chunk")
    async with database.tenant_tx(organisation_id) as conn:
        ids = [row["id"] for row in await conn.fetch("SELECT id FROM knowledge.chunk LIMIT 5")]
        before = await conn.fetchval(_READ)
        for _ in range(7):
            rows = await queries.filter_chunks(
                conn, **SearchFilter().arguments(organisation_id), chunk_ids=ids
            )
            assert len(rows) == 5
        assert await conn.fetchval(_READ) - before <= 7 * 5


_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'entry'"


async def test_nobody_finds_anothers_by_any_leg(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, name="other")).id
        await index(conn, other, [FOX, DOG])
        await index(conn, organisation_id, [TAX])
    for mode in ("hybrid", "keyword", "vector"):
        found = await _search(database, organisation_id, SearchQuery(words="fox", mode=mode))
        assert {one.uri for one in found.items} <= {TAX.uri}
    async with database.tenant_tx(organisation_id) as conn:
        # Asked for as the other, whose rows this transaction cannot see.
        for mode in ("keyword", "vector"):
            found = await Searcher(Known()).search(conn, other, SearchQuery(words="fox", mode=mode))
            assert found.items == []
        with pytest.raises(NotFound):
            await Searcher(Known()).similar(conn, other, SimilarTo(uri=FOX.uri))
        assert await conn.fetchval("SELECT count(*) FROM knowledge.vector") == 1


async def test_every_organisation_has_an_index_of_its_own(
    database: Database, organisation_id: OrganisationId
) -> None:
    """Others' vectors are in no graph that a search walks, and in no statistic it ranks by."""
    letters = Letters("abcd")
    texts = [Text(f"t{n}", "abcd"[n % 4] * (n + 1) + " apple") for n in range(12)]
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, name="other")).id
        for one in (organisation_id, other):
            await index(conn, one, texts, embedder=letters)
    alone = await _search(database, organisation_id, SearchQuery(words="apple"), Known((letters,)))
    await vector_indexes.maintain_indexes(database, many=10)
    async with database.owner() as owner:
        rows = await owner.fetch("SELECT reltuples FROM pg_class WHERE relname LIKE 'vector_hnsw%'")
        assert [row["reltuples"] for row in rows] == [12, 12]
    async with database.system_tx() as conn:
        await index(
            conn, other, [Text(f"u{n}", "apple apple") for n in range(50)], embedder=letters
        )
    again = await _search(database, organisation_id, SearchQuery(words="apple"), Known((letters,)))
    assert [one.reasons for one in again.items] == [one.reasons for one in alone.items]


async def test_what_is_remembered_of_one_is_told_to_no_other(
    database: Database, organisation_id: OrganisationId
) -> None:
    """One process answers for all; what it keeps in memory, also of spellings, is each one's own."""
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, name="other")).id
        await index(conn, other, [Text("z", "A zebra crossing", "Zebras")])
        await index(conn, organisation_id, [TAX])
    searcher = Searcher(Known())
    for words in ("zebra", "zebrra"):
        found = {}
        for owner in (other, organisation_id):
            async with database.tenant_tx(owner) as conn:
                query = SearchQuery(words=words, mode="keyword")
                found[owner] = await searcher.search(conn, owner, query)
        assert [one.uri for one in found[other].items] == ["z"]
        assert found[organisation_id].items == []
        assert not found[organisation_id].corrected
    assert found[other].corrected == {"zebrra": ("zebra",)}


async def test_a_filter_that_fits_only_bad_matches_still_finds_them(
    database: Database, organisation_id: OrganisationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When what comes first never fits, what fits is listed."""
    monkeypatch.setattr(filters, "FEW_CHUNKS", 0)
    monkeypatch.setattr(retrievers, "_MOST_CANDIDATES", 20)
    good = [Text(f"good/{n}", "apple apple apple") for n in range(60)]
    bad = Text("bad/1", "apple among very many other words that say nothing of fruit")
    await _store(database, organisation_id, [*good, bad])
    for mode in ("keyword", "vector"):
        query = SearchQuery(
            words="apple", mode=mode, depth=5, most=5, filters=SearchFilter(path="bad/")
        )
        found = await _search(database, organisation_id, query)
        assert [one.uri for one in found.items] == [bad.uri]


async def _store(database: Database, organisation_id: OrganisationId, texts: list[Text]) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, texts)


async def _search(
    database: Database,
    organisation_id: OrganisationId,
    query: SearchQuery,
    known: Known | None = None,
) -> SearchResults:
    async with database.tenant_tx(organisation_id) as conn:
        found = await Searcher(known or Known()).search(conn, organisation_id, query)
        # So that what it scanned is counted when it ends.
        await conn.execute("SELECT pg_stat_force_next_flush()")
        return found


async def _scans(database: Database, name: str) -> int:
    async with database.system_tx() as conn:
        count: int = await conn.fetchval(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1", name
        )
        return count
