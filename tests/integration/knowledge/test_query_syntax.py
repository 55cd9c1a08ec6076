"""Phrases, exclusions, AND and OR: what is found by each leg, and that odd signs never fail."""

import pytest

from tests.support.search_corpus import Known, Text, index
from trapline.db.pool import Database
from trapline.knowledge import filters
from trapline.knowledge.filters import SearchFilter
from trapline.knowledge.search import Mode, Searcher, SearchQuery, SearchResults
from trapline.model import OrganisationId

MODES: tuple[Mode, ...] = ("hybrid", "keyword", "vector")
TEXTS = [
    Text("side", "The red fox jumps over the lazy dog."),
    Text("apart", "A fox that is red, and a dog."),
    Text("dogs", "Dogs bark at the moon; the lazy dog sleeps."),
    Text("cat", "A cat sleeps all day.", "To be or not to be"),
    Text("german", "Der rote Fuchs springt über den faulen Hund.", language="de"),
    Text("signs", "Call read_text() on it: the point-in-time recovery."),
]


async def found(
    database: Database, organisation_id: OrganisationId, words: str, mode: Mode, **more: object
) -> SearchResults:
    async with database.tenant_tx(organisation_id) as conn:
        query = SearchQuery(words=words, mode=mode, **more)  # type: ignore[arg-type]
        return await Searcher(Known()).search(conn, organisation_id, query)


async def uris(
    database: Database, organisation_id: OrganisationId, words: str, mode: Mode, **more: object
) -> set[str]:
    return {one.uri for one in (await found(database, organisation_id, words, mode, **more)).items}


@pytest.fixture
async def indexed(database: Database, organisation_id: OrganisationId) -> None:
    async with database.system_tx() as conn:
        await index(conn, organisation_id, TEXTS)


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('"red fox"', {"side"}),
        ('"RED  Fox" jumping', {"side"}),
        ('"fox red"', set()),
        ('"lazy dog"', {"side", "dogs"}),
        ('"lazy dog" -fox', {"dogs"}),
        ('"lazy dog" -"red fox"', {"dogs"}),
        ('"red fox" OR "cat sleeps"', {"side", "cat"}),
        ('"red fox" OR cats', {"side", "cat"}),
        ('"red fox" "lazy dog"', {"side"}),
        ('"red fox" "cat sleeps"', set()),
        ("fox AND dogs", {"side", "apart"}),
        ("+dog +moon", {"dogs"}),
        ("cat OR moon sleeping", {"cat", "dogs"}),
        ('"rote Fuchs"', {"german"}),
        ('"dog sleeps" OR "faulen Hund"', {"dogs", "german"}),
        ('"point in time"', {"signs"}),
        ("+read_text", {"signs"}),
        ('"dogs"', {"dogs"}),
        ('"unicorn fox"', set()),
        ('"foks"', set()),
    ],
)
async def test_what_must_be_there_is_there(
    database: Database, organisation_id: OrganisationId, words: str, expected: set[str]
) -> None:
    for mode in MODES:
        assert await uris(database, organisation_id, words, mode) == expected, mode


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("words", ['"lazy dog" -fox', "+dog", "dog -fox"])
async def test_a_query_in_one_language_may_have_operators(
    database: Database, organisation_id: OrganisationId, words: str
) -> None:
    """Texts in other languages are left out, with their segments."""
    assert "german" in {text.uri for text in TEXTS}
    got = await uris(database, organisation_id, words, "keyword", language="en")
    assert "dogs" in got
    assert "german" not in got


@pytest.mark.usefixtures("indexed")
async def test_what_is_ruled_out_is_found_by_no_leg(
    database: Database, organisation_id: OrganisationId
) -> None:
    for words in ("dog -fox", "dog NOT foxes", 'dog -(fox OR "not there")'):
        assert await uris(database, organisation_id, words, "keyword") == {"dogs"}
        for mode in MODES:
            assert not {"side", "apart"} & await uris(database, organisation_id, words, mode)
    everything = {text.uri for text in TEXTS}
    phrase = 'dog -"red fox"'
    assert await uris(database, organisation_id, phrase, "vector") == everything - {"side"}


@pytest.mark.usefixtures("indexed")
async def test_a_phrase_of_stop_words_is_read_in_the_texts(
    database: Database, organisation_id: OrganisationId
) -> None:
    assert await uris(database, organisation_id, '"to be or not to be" cat', "keyword") == {"cat"}
    assert await uris(database, organisation_id, '"to be or not to be" dog', "vector") == {"cat"}


@pytest.mark.usefixtures("indexed")
async def test_what_only_rules_out_is_told(
    database: Database, organisation_id: OrganisationId
) -> None:
    for mode in MODES:
        answer = await found(database, organisation_id, '-fox -"lazy dog"', mode)
        assert answer.items == []
        assert "only exclusions" in answer.warnings[0]


@pytest.mark.parametrize("few", [0, 5, 10_000])
async def test_with_filters_however_many_fit(
    database: Database,
    organisation_id: OrganisationId,
    monkeypatch: pytest.MonkeyPatch,
    few: int,
) -> None:
    """Few passages are listed, many are checked as they come: the answer is the same."""
    monkeypatch.setattr(filters, "FEW_CHUNKS", few)
    texts = [
        Text(f"{'pdf' if n % 2 else 'html'}/{n}", f"{'red fox' if n % 3 else 'fox red'} {n} dog")
        for n in range(30)
    ]
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [*texts, Text("pdf/none", "a red fox, none, no d")])
    expected = {f"pdf/{n}" for n in range(30) if n % 2 and n % 3}
    for mode in MODES:
        for words in ('"red fox" dog -none', '"red fox" AND dog', '+fox "red fox" -"no d"'):
            wanted = SearchFilter(path="pdf/")
            got = await uris(database, organisation_id, words, mode, filters=wanted, most=50)
            assert got == expected, (mode, words)


async def test_a_phrase_is_found_below_many_better_matches(
    database: Database, organisation_id: OrganisationId
) -> None:
    """What has the words apart may rank first; what has them side by side is what is shown."""
    better = [Text(f"b{n}", "fox fox fox red red") for n in range(150)]
    long = Text("long", "A red fox among " + "very many other words that say nothing of it " * 8)
    async with database.system_tx() as conn:
        await index(conn, organisation_id, [*better, long])
    for mode in MODES:
        assert await uris(database, organisation_id, '"red fox"', mode) == {"long"}
