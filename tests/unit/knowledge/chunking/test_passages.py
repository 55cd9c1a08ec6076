"""Passages: bounded, in order, nothing lost, cut where the text has its joints."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import InvalidInput
from trapline.knowledge.chunking import ChunkSize, Passage, passages
from trapline.knowledge.chunking.blocks import BlockKind, blocks
from trapline.knowledge.chunking.plain_text import plain_text, plain_title
from trapline.knowledge.chunking.tokens import count_tokens

SMALL = ChunkSize(most=32, overlap=8)

_lines = st.sampled_from(
    [
        "# One",
        "## Two",
        "Some words stand here. And a second sentence follows them!",
        "- an item",
        "  - an item in an item",
        "| a | b |",
        "| - | - |",
        "```python",
        "```",
        "x = 1",
        r"A [link with \[words\]](https://example.com/a_(b)/long/path?x=1), ![](i.png) \*so\*",
        "",
        "日本語の文章です。次の文もあります。",
        "a" * 300,
    ]
)
markdown_texts = st.lists(_lines, max_size=40).map("\n".join) | st.text(max_size=400)


@given(markdown_texts)
def test_every_passage_is_a_bounded_slice_and_nothing_is_lost(text: str) -> None:
    found = list(passages(text, SMALL))
    covered = 0
    for passage in found:
        assert passage.text == text[passage.start : passage.end]
        assert passage.tokens == count_tokens(passage.words) <= SMALL.most
        assert not text[covered : passage.start].strip()
        assert passage.end > covered
        covered = passage.end
    assert not text[covered:].strip()


@given(markdown_texts)
def test_blocks_are_in_order_and_hold_all_that_is_not_white(text: str) -> None:
    at = 0
    for block in blocks(text):
        assert at <= block.start < block.end
        assert not text[at : block.start].strip()
        at = block.end
    assert not text[at:].strip()


def test_kinds_of_blocks() -> None:
    text = (
        "# Title\n\nWords\nand more.\n\n- one\n\n  still one\n- two\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n~~~~sh\n# no heading\n```\n~~~~\nend"
    )
    assert [
        (block.kind, text[block.start : block.end].partition("\n")[0]) for block in blocks(text)
    ] == [
        (BlockKind.HEADING, "# Title"),
        (BlockKind.TEXT, "Words"),
        (BlockKind.LIST, "- one"),
        (BlockKind.TABLE, "| a | b |"),
        (BlockKind.CODE, "~~~~sh"),
        (BlockKind.TEXT, "end"),
    ]


def test_passages_stand_under_their_headings() -> None:
    body = "This sentence has about ten words in all here. " * 3
    text = f"# Book\n\n## First\n\n{body}\n\n### Deep\n\n{body}\n\n## Second\n\n{body}"
    found = list(passages(text, ChunkSize(most=48, overlap=0)))
    assert [passage.headings for passage in found] == [
        ("Book", "First"),
        ("Book", "First", "Deep"),
        ("Book", "Second"),
    ]
    assert found[0].text.startswith("# Book")


def test_a_heading_does_not_leave_a_few_words_alone() -> None:
    (only,) = passages("# Title\n\nShort.\n\n## Next\n\nAlso short.")
    assert only.headings == ("Title",)


def test_the_next_passage_repeats_whole_sentences() -> None:
    text = " ".join(f"Sentence number {number} says something." for number in range(40))
    found = list(passages(text, ChunkSize(most=64, overlap=16)))
    assert len(found) > 3
    for before, after in pairwise(found):
        repeated = text[after.start : before.end]
        assert re.match(r"Sentence number \d+ says something\.", repeated)
        assert 0 < count_tokens(repeated) <= 16


def test_code_and_tables_that_fit_stay_whole_and_are_not_repeated() -> None:
    prose = "Words come before the code, and there are quite a few of them. " * 3
    code = "```python\n" + "\n".join(f"value_{n} = compute({n})" for n in range(6)) + "\n```"
    table = "| name | size |\n| --- | --- |\n" + "\n".join(f"| item {n} | {n} |" for n in range(6))
    found = list(passages(f"{prose}\n\n{code}\n\n{table}\n\n{prose}", ChunkSize(80, 20)))
    assert _holding(found, "value_").text.count("```") == 2
    assert _holding(found, "item 0").text.count("| item") == 6
    assert len([p for p in found if "item 5" in p.text]) == 1


def test_a_long_table_is_cut_between_rows() -> None:
    rows = "\n".join(f"| row {n} | some words of text |" for n in range(60))
    found = list(passages(f"| a | b |\n| - | - |\n{rows}", SMALL))
    assert len(found) > 5
    assert all(passage.text.rstrip("\n").endswith("|") for passage in found)


def test_white_space_has_no_passages() -> None:
    assert list(passages("")) == []
    assert list(passages(" \n\n\t\n")) == []


def test_a_million_letters_without_a_joint_are_cut_all_the_same() -> None:
    found = list(passages("x" * 100_000))
    assert "".join(passage.text for passage in found) == "x" * 100_000


@pytest.mark.parametrize(("most", "overlap"), [(0, 0), (15, 0), (64, 33), (64, -1)])
def test_sizes_that_make_no_sense_are_refused(most: int, overlap: int) -> None:
    with pytest.raises(InvalidInput, match="token"):
        ChunkSize(most, overlap)


def _holding(found: list[Passage], words: str) -> Passage:
    return next(passage for passage in found if words in passage.text)


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("see [the page](https://example.com/a_(b)), please", "see the page, please"),
        ('[a](<x y> "t")', '[a](<x y> "t")'),
        ('[a](x "a title")', "a"),
        ("![a picture](data:image/png;base64,AAAA)", "a picture"),
        (r"[f\[0\]](u) and 2 \* 3", "f[0] and 2 * 3"),
        ("<https://example.com/>", "https://example.com/"),
        ("a[0](not a target)", "a[0](not a target)"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_wording_leaves_out_what_nobody_reads(markdown: str, words: str) -> None:
    assert plain_text(markdown) == words


def test_titles_have_no_markup() -> None:
    (only,) = passages("# [`asyncio`](https://example.com/asyncio) — **I/O**\n\nText.")
    assert only.headings == ("asyncio — I/O",) == (plain_title("`asyncio` — I/O"),)
