"""Ids may be given by their first digits."""

from uuid import UUID

import pytest

from trapline.db.id_prefix import id_range, only_match
from trapline.errors import InvalidInput, NotFound

ID = UUID("01a1e3c5-c553-7365-8016-cdcb07ab8c80")


@pytest.mark.parametrize("prefix", ["01a1", "01A1E3C5", "01a1e3c5-c553-7", str(ID), ID.hex])
def test_a_prefix_spans_the_ids_that_begin_with_it(prefix: str) -> None:
    low, high = id_range(prefix)
    assert low <= ID <= high
    assert (low == high) == (len(prefix) >= 32)


@pytest.mark.parametrize("prefix", ["", "01a", "name", "01a1%", "01a1' OR", str(ID) + "0"])
def test_other_texts_are_refused(prefix: str) -> None:
    with pytest.raises(InvalidInput, match="is not an id"):
        id_range(prefix)


def test_only_one_match_counts() -> None:
    assert only_match([ID], "01a1", "job") == ID
    with pytest.raises(InvalidInput, match="give more digits"):
        only_match([ID, ID], "01a1", "job")
    with pytest.raises(NotFound, match="There is no job 01a1"):
        only_match([], "01a1", "job")
