import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trapline.extract.diff import diff, meaning
from trapline.extract.line_alignment import _fewest_edits, aligned
from trapline.model import Document

OLD = "# Prices\n\nSaw: 10 EUR\nHammer: 12 EUR\n\nOpen daily.\nCall us.\nOld line."
NEW = "# Prices\n\nSaw: 11 EUR\nHammer: 12 EUR\n\nOpen daily.\nCall us.\nWrite to us.\nOld line."


def test_a_unified_diff() -> None:
    found = diff(OLD, NEW)
    assert found.text == (
        "--- previous\n+++ current\n@@ -1,7 +1,8 @@\n # Prices\n-Saw: 10 EUR\n+Saw: 11 EUR\n"
        " Hammer: 12 EUR\n Open daily.\n Call us.\n+Write to us.\n Old line.\n"
    ).replace("-1,7 +1,8", "-1,6 +1,7")
    assert (found.added_lines, found.removed_lines) == (2, 1)
    assert (found.added_words, found.removed_words) == (4, 1)


def test_the_json_has_the_shape_of_parse_diff() -> None:
    (file,) = diff(Document("u", markdown="one\ntwo"), Document("u", markdown="one\n2")).files
    assert file == {
        "from": "previous",
        "to": "current",
        "additions": 1,
        "deletions": 1,
        "chunks": [
            {
                "content": "@@ -1,2 +1,2 @@",
                "changes": [
                    {"type": "normal", "normal": True, "ln1": 1, "ln2": 1, "content": " one"},
                    {"type": "del", "del": True, "ln": 2, "content": "-two"},
                    {"type": "add", "add": True, "ln": 2, "content": "+2"},
                ],
                "oldStart": 1,
                "oldLines": 2,
                "newStart": 1,
                "newLines": 2,
            }
        ],
    }


def test_changes_far_apart_are_chunks_of_their_own() -> None:
    lines = [f"line {n}" for n in range(40)]
    edited = ["first", *lines[1:30], "thirty", *lines[31:]]
    chunks = diff("\n".join(lines), "\n".join(edited)).files[0]["chunks"]
    assert [chunk["content"] for chunk in chunks] == ["@@ -1,4 +1,4 @@", "@@ -28,7 +28,7 @@"]  # type: ignore[attr-defined]


def test_markup_alone_is_no_change() -> None:
    old = "* one\n* two\n\n**Bold** and [a link](https://x.example/?a=1&utm_source=mail)\n![i](/i.png?v=1)\n| a | b |\n|---|---|"
    new = "- one\n- two\n\n\n__Bold__  and [a link](https://x.example/?a=1&gclid=77)\n![i](/i.png?v=2)\n|a|b|\n| :-- | --- |"
    found = diff(old, new)
    assert (found.changed, found.text, found.files) == (False, "", [])


def test_a_link_to_another_page_is_a_change() -> None:
    assert diff("[a](https://x.example/1)", "[a](https://x.example/2)").changed
    assert diff("[a](https://x.example/?id=1)", "[a](https://x.example/?id=2)").changed


def test_what_looks_like_markup_in_words_is_kept() -> None:
    assert meaning("snake_case_name 2*3*4") == "snake_case_name 2*3*4"


def test_from_nothing_and_to_nothing() -> None:
    assert diff("", "a\nb").added_lines == 2
    assert diff("a\nb", "").removed_lines == 2
    assert not diff("", "\n\n").changed


def test_a_megabyte_of_lines() -> None:
    dice = random.Random(7)
    lines = [
        " ".join(dice.choices(["fox", "hill", "sea", "far", "run"], k=10)) for _ in range(20_000)
    ]
    edited = [line for line in lines if dice.random() > 0.01]
    found = diff("\n".join(lines), "\n".join(edited))
    assert found.added_lines == 0
    assert found.removed_lines == len(lines) - len(edited)


def test_texts_that_repeat_two_lines_end() -> None:
    assert diff("x\ny\n" * 50_000, "y\nx\n" * 40_000 + "z").changed
    assert diff("![](" * 100_000, "*_" * 200_000).changed


@given(
    st.lists(st.sampled_from("abcde"), max_size=30),
    st.lists(st.sampled_from("abcdef"), max_size=30),
)
def test_alignment_pairs_equal_lines_in_order(old: list[str], new: list[str]) -> None:
    pairs = aligned(old, new)
    assert all(old[x] == new[y] for x, y in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


@given(st.text(alphabet="ab \n#*", max_size=60), st.text(alphabet="ab \n#*", max_size=60))
def test_a_diff_rebuilds_the_new_text(old: str, new: str) -> None:
    found = diff(old, new)
    if found.changed:
        assert found.added_lines or found.removed_lines
    said = [meaning(line) for line in new.splitlines()]
    assert (not found.changed) == (
        [m for m in said if m] == [m for line in old.splitlines() if (m := meaning(line))]
    )


@given(
    st.lists(st.sampled_from("abc"), max_size=40), st.lists(st.sampled_from("abcd"), max_size=40)
)
def test_the_fewest_edits_are_as_few_as_can_be(old: list[str], new: list[str]) -> None:
    pairs = sorted(_fewest_edits(old, new))
    assert all(old[x] == new[y] for x, y in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    assert len(pairs) == _longest_common(old, new)


def _longest_common(old: list[str], new: list[str]) -> int:
    row = [0] * (len(new) + 1)
    for line in old:
        before = row
        row = [0]
        for place, other in enumerate(new):
            row.append(before[place] + 1 if line == other else max(row[place], before[place + 1]))
    return row[-1]


def test_a_few_edits_in_many_lines_of_few_kinds() -> None:
    dice = random.Random(3)
    lines = [f"row {dice.randrange(40)}" for _ in range(20_000)]
    edited = [line for line in lines if dice.random() > 0.01]
    found = diff("\n".join(lines), "\n".join(edited))
    assert (found.added_lines, found.removed_lines) == (0, len(lines) - len(edited))
