"""Blocks are chosen by their scores: the best prefix, without data and repeats."""

import numpy as np

from trapline.extract.main_content.blocks import Blocks
from trapline.extract.main_content.selection import choose


def page_of(texts: list[str]) -> Blocks:
    words = np.array([len(text.split()) for text in texts])
    none = np.zeros(len(texts), dtype=np.intp)
    return Blocks(texts, texts, words, none, none, none, none, none)


def test_the_less_recall_counts_the_less_is_taken() -> None:
    page = page_of([f"text {number} " + "word " * 18 for number in range(10)])
    scores = np.linspace(0.95, 0.25, 10, dtype=np.float32)
    taken = [choose(scores, page, recall).words for recall in (2.0, 1.0, 0.8, 0.3)]
    assert taken == sorted(taken, reverse=True)
    assert taken[0] > taken[1] > taken[3]


def test_data_and_repeated_texts_are_dropped() -> None:
    data = '{"a": "b", "c": "d", "e": "f"}'
    page = page_of(["one two three", data, "short", "one two three", "short", "four five six"])
    choice = choose(np.full(6, 0.9, np.float32), page)
    assert choice.flags.tolist() == [True, False, True, False, True, True]
    assert choice.words == 8


def test_something_is_always_chosen() -> None:
    page = page_of(["a", "b", "c", "d"])
    assert choose(np.full(4, 0.01, np.float32), page).flags.any()
    unknown = choose(np.array([np.nan, 0.3, 0.9, np.nan], np.float32), page)
    assert unknown.flags.tolist() == [False, False, True, False]
