"""BM25: the same ranks as the formula gives, whatever is pruned, split or merged."""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.knowledge.keyword.analysis import language_of, terms
from trapline.knowledge.keyword.postings import (
    PART,
    Postings,
    decoded_lengths,
    length_codes,
    unpack,
)
from trapline.knowledge.keyword.ranking import K1, B, Bm25Ranker, Corpus, ScoredText, posting_head
from trapline.knowledge.keyword.segments import Segment, build_segment, merge_postings, renumber

Texts = dict[int, Counter[str]]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("The runners were running", "en", ["runner", "run"]),
        ("Die Häuser und das Haus", "de", ["haus", "haus"]),
        ("read_text() isn't here", "en", ["read_text", "read", "text"]),
        ("日本語", "ja", ["日本", "本語"]),
        ("ＦＵＬＬ width", "xx", ["full", "width"]),  # noqa: RUF001
        ("x" * 41 + " ok", "xx", ["ok"]),
        ("I don't want what I’m told", "en", ["want", "told"]),  # noqa: RUF001
        ("the of and", "en", []),
        ("", "en", []),
    ],
)
def test_terms(text: str, language: str, expected: list[str]) -> None:
    assert terms(text, language) == expected


@pytest.mark.parametrize(
    ("tag", "language"),
    [("en-GB", "en"), ("DE", "de"), ("nb_NO", "no"), ("tlh", "xx"), ("", "xx"), (None, "xx")],
)
def test_language_of_a_tag(tag: str | None, language: str) -> None:
    assert language_of(tag) == language


def test_length_codes_are_close_and_in_order() -> None:
    lengths = np.arange(1, 60_000)
    decoded = decoded_lengths()[length_codes(lengths)]
    assert np.all(np.abs(decoded / lengths - 1) < 0.03)
    assert np.all(np.diff(decoded) >= 0)


def test_postings_survive_packing() -> None:
    postings = build_segment({5: Counter(a=1, b=300), 9: Counter(b=2)}).postings["b"]
    again = unpack(postings.packed())
    assert again.ordinals.tolist() == [0, 1]
    assert again.counts.tolist() == [255, 2]
    assert again.lengths.tolist() == postings.lengths.tolist()


words = st.sampled_from("abcdefgh")
corpora = st.dictionaries(
    st.integers(1, 10_000), st.lists(words, min_size=1, max_size=12).map(Counter), max_size=30
)


@given(corpora, corpora, st.lists(words, min_size=1, max_size=4, unique=True), st.integers(1, 8))
def test_pruned_ranks_are_the_formulas(one: Texts, two: Texts, query: list[str], most: int) -> None:
    segments = [build_segment(one), build_segment({chunk + 20_000: t for chunk, t in two.items()})]
    found = _rank(segments, query, most)
    expected = _by_formula(segments, query)
    assert [score.score for score in found] == pytest.approx(expected[:most], rel=1e-4)


def test_pruning_reads_only_the_parts_in_question() -> None:
    """A rare term settles who can win; of the common one's parts only theirs are read."""
    texts = {chunk: Counter(common=1, filler=3) for chunk in range(PART * 20)}
    for chunk in (PART * 3, PART * 7 + 1):
        texts[chunk] = Counter(common=1, rare=3)
    segment = build_segment(texts)
    read: list[int] = []
    found = _rank([segment], ["rare", "common"], 2, read)
    assert [score.ordinal for score in found] == [PART * 3, PART * 7 + 1]
    assert read == [3, 7]
    expected = _by_formula([segment], ["rare", "common"])[:2]
    assert [score.score for score in found] == pytest.approx(expected, rel=1e-4)


def test_only_the_allowed_are_ranked() -> None:
    segment = build_segment({chunk: Counter(a=1 + chunk % 3, b=2) for chunk in range(50)})
    allowed = np.array([3, 20, 40], np.uint32)
    found = _rank([segment], ["a"], 2, allowed={0: allowed})
    assert [score.ordinal for score in found] == [20, 40]


@given(corpora, corpora, st.sets(st.integers(1, 10_000)))
def test_merging_is_indexing_what_is_left(one: Texts, two: Texts, gone: set[int]) -> None:
    shifted = {chunk + 20_000: counts for chunk, counts in two.items()}
    old = [build_segment(one), build_segment(shifted)]
    left = build_segment({c: t for c, t in (one | shifted).items() if c not in gone})
    new = renumber([segment.chunk_ids for segment in old], gone)
    rows = sorted(
        ((term, number, part) for number, s in enumerate(old) for term, part in s.postings.items()),
        key=lambda row: row[:2],
    )
    postings = dict(merge_postings(rows, new))
    assert new.chunk_ids.tolist() == left.chunk_ids.tolist()
    assert postings.keys() == left.postings.keys()
    for term, whole in postings.items():
        assert whole.packed() == left.postings[term].packed()


def _rank(
    segments: Sequence[Segment],
    query: Sequence[str],
    most: int,
    read: list[int] | None = None,
    allowed: Mapping[int, np.ndarray] | None = None,
) -> list[ScoredText]:
    async def parts(
        wanted: Mapping[tuple[int, str], Sequence[int]],
    ) -> dict[tuple[int, str], list[Postings]]:
        if read is not None:
            read.extend(part for parts in wanted.values() for part in parts)
        return {
            (segment, term): [segments[segment].postings[term].parts()[n] for n in numbers]
            for (segment, term), numbers in wanted.items()
        }

    corpus = Corpus(
        sizes={number: len(segment.chunk_ids) for number, segment in enumerate(segments)},
        texts=sum(len(segment.chunk_ids) for segment in segments),
        length=sum(segment.length for segment in segments),
        heads={
            (number, term): posting_head(segment.postings[term])
            for number, segment in enumerate(segments)
            for term in query
            if term in segment.postings
        },
    )
    ranking = Bm25Ranker(corpus, dict.fromkeys(query, 1.0), parts, allowed)
    return asyncio.run(ranking.best(most))


def _by_formula(segments: Sequence[Segment], query: Sequence[str]) -> list[float]:
    """Score every text in plain Python, with the lengths that the codes stand for."""
    texts = sum(len(segment.chunk_ids) for segment in segments)
    mean = max(sum(segment.length for segment in segments) / max(texts, 1), 1)
    having = {
        term: sum(len(s.postings[term]) for s in segments if term in s.postings) for term in query
    }
    scores: dict[tuple[int, int], float] = {}
    for number, segment in enumerate(segments):
        for term in query:
            postings = segment.postings.get(term)
            if postings is None:
                continue
            idf = math.log(1 + (texts - having[term] + 0.5) / (having[term] + 0.5))
            for at in range(len(postings)):
                count = int(postings.counts[at])
                length = decoded_lengths()[postings.lengths[at]]
                weight = count / (count + K1 * (1 - B + B * length / mean))
                key = number, int(postings.ordinals[at])
                scores[key] = scores.get(key, 0.0) + idf * weight
    return sorted(scores.values(), reverse=True)
