"""How much memory the embedded server takes for its pages."""

import pytest

from trapline.db.embedded.cluster import buffers_mb


@pytest.mark.parametrize(
    ("gigabytes", "expected"), [(0.5, 128), (2, 128), (8, 512), (16, 1024), (512, 1024)]
)
def test_buffers_follow_the_machine_within_bounds(gigabytes: float, expected: int) -> None:
    assert buffers_mb(int(gigabytes * 2**30)) == expected
