"""What counts as a change between two versions of a page."""

import pytest

from trapline.extract.version import EXTRACTOR_VERSION
from trapline.frontier.patterns import Patterns
from trapline.model import Document
from trapline.pipeline.crawl import change_detection
from trapline.pipeline.sql.page_lookup import PreviousVersionRow
from trapline.store.changes import Extent
from trapline.store.pages import Comparison

NOTHING = Patterns(())


def compared(
    old: str, new: str, *, noise: Patterns = NOTHING, extractor: int = EXTRACTOR_VERSION
) -> Comparison:
    previous = PreviousVersionRow(old, old, extractor, b"bytes")
    sha256 = b"bytes" if old == "same bytes" else b"others"
    document = Document(url="https://example.com/", text=new, markdown=new)
    return change_detection.compare_versions(7, previous, document, sha256, noise)


def test_lines_and_words_are_counted() -> None:
    found = compared("one\n\ntwo three", "one\n\ntwo four\n\nfive")
    assert found == Comparison(7, same=False, extent=Extent(2, 1, 2, 1))


def test_a_new_extractor_alone_is_no_change() -> None:
    assert compared("same bytes", "read in another way", extractor=EXTRACTOR_VERSION - 1).same
    # The same extractor reads the same bytes in the same way: then something else is wrong.
    assert not compared("same bytes", "read in another way").same
    assert not compared("other bytes", "another text", extractor=EXTRACTOR_VERSION - 1).same


def test_noise_does_not_count_and_is_not_shown() -> None:
    noise = Patterns(("^Updated", "[0-9]+ visitors"))
    old, new = "text\nUpdated 10:00\nnow 3 visitors", "text\nUpdated 11:00\nnow 4 visitors"
    assert compared(old, new, noise=noise).same
    found = compared(old, f"{new}\nmore", noise=noise)
    assert (found.same, found.extent) == (False, Extent(1, 0, 1, 0))
    shown = change_detection.diff_without_noise(old, f"{new}\nmore", noise).text
    assert "Updated" not in shown
    assert "+more" in shown


@pytest.mark.parametrize(
    ("extent", "sentence"),
    [
        (None, ""),
        (Extent(0, 0, 0, 0), "Nothing changed."),
        (Extent(1, 0, 5, 0), "1 line added, 0 removed."),
        (Extent(3, 2, 5, 1), "3 lines added, 2 removed."),
    ],
)
def test_summaries(extent: Extent | None, sentence: str) -> None:
    assert change_detection.summary(extent) == sentence
