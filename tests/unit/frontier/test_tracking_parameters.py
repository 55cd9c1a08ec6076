import re

import pytest

from tests.support.paths import DOCS
from trapline.frontier.tracking_parameters import TRACKING_NAMES, TRACKING_PREFIXES, is_tracking

PAGE = DOCS / "urls.md"


def test_the_list_is_documented() -> None:
    section = PAGE.read_text("utf-8").partition("## Tracking parameters")[2].partition("\n## ")[0]
    listed = re.findall(r"`([a-z0-9_]+)`", section.partition("The list is")[0])
    assert listed == [*TRACKING_PREFIXES, *TRACKING_NAMES]


def test_names_are_lower_case_and_no_prefix_covers_them() -> None:
    assert len(set(TRACKING_NAMES)) == len(TRACKING_NAMES)
    for name in TRACKING_NAMES:
        assert name == name.lower()
        assert not name.startswith(TRACKING_PREFIXES)


@pytest.mark.parametrize("name", ["utm_source", "UTM_Whatever", "gclid", "FBCLID", "mc_eid"])
def test_tracking(name: str) -> None:
    assert is_tracking(name)


@pytest.mark.parametrize("name", ["utm", "id", "ref", "source", "page", "q", "gclids", ""])
def test_content(name: str) -> None:
    assert not is_tracking(name)
