"""Which ordinals of a segment are of some entries, however its entries lie."""

import numpy as np
import pytest

from trapline.knowledge.keyword.segment_cache import SegmentTexts
from trapline.knowledge.sql.keyword import SegmentChunksRow


@pytest.mark.parametrize("far", [0, 10**12])
@pytest.mark.parametrize("grouped", [True, False])
def test_ordinals_are_those_of_the_entries(*, grouped: bool, far: int) -> None:
    chance = np.random.default_rng(3)
    entry_ids = chance.integers(1, 60, 300) + far * chance.integers(0, 2, 300)
    if grouped:
        entry_ids = np.sort(entry_ids)
    ids = np.arange(300, dtype=np.int64)
    texts = SegmentTexts.of(
        SegmentChunksRow(1, ids.tobytes(), entry_ids.astype(np.int64).tobytes())
    )
    assert texts.grouped is grouped
    for wanted in ([], [7], [0, 7, 8, 59, 61, far + 7], list(range(1, 60))):
        entries = np.array(sorted(set(wanted)), np.int64)
        expected = [n for n, entry in enumerate(entry_ids) if entry in set(wanted)]
        found = texts.ordinals_in(entries)
        assert found.dtype == np.uint32
        assert found.tolist() == expected
