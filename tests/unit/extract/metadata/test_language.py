"""English is recognised by its common words, without the detector."""

from trapline.extract.metadata import language


def test_a_text_that_begins_with_contents_is_looked_at_further() -> None:
    """Without the detector: it would take ten times as long to say the same."""
    contents = "1.1. Index Types\nChapter 11. Indexes\n" * 28
    prose = (
        "It is the kind of index that you get by default and which is right with most of them. "
        * 23
    )
    assert not language._is_plainly_english(contents)
    assert language._is_plainly_english(contents + prose)
