import pytest

from trapline.frontier.priority import (
    LOWEST_PRIORITY,
    SEED_PRIORITY,
    depth_of_rank,
    is_homepage,
    link_priority,
    link_rank,
    sitemap_priority,
    traffic_priorities,
)
from trapline.model import Region


@pytest.mark.parametrize(
    ("region", "score"),
    [(Region.HEADER, 1.0), (Region.NAV, 1.0), (Region.FOOTER, 0.99), (Region.BODY, 0.9)],
)
def test_the_regions_of_the_homepage_have_their_scores(region: Region, score: float) -> None:
    priority = link_priority(SEED_PRIORITY, region, on_homepage=True)
    assert priority == round((1 - score) * LOWEST_PRIORITY)


@pytest.mark.parametrize("region", list(Region))
def test_a_link_of_another_page_has_nine_tenths_of_its_score(region: Region) -> None:
    assert link_priority(100, region) == 190
    assert link_priority(190, region) == 271


def test_a_page_far_from_the_homepage_is_no_worse_than_the_lowest() -> None:
    priority = SEED_PRIORITY
    for _ in range(200):
        assert priority <= (priority := link_priority(priority)) <= LOWEST_PRIORITY
    assert priority == LOWEST_PRIORITY == link_priority(LOWEST_PRIORITY + 7)


def test_an_entry_of_a_sitemap_has_a_tenth_moved_by_its_stated_priority() -> None:
    assert sitemap_priority(None) == sitemap_priority(0.5) == 900
    assert sitemap_priority(5.0) == sitemap_priority(1.0) < 900 < sitemap_priority(0.0)


def test_traffic_scores_from_a_tenth_to_almost_one() -> None:
    lifted = traffic_priorities({"/top": 10_000, "/middle": 100, "/low": 1, "/none": 0})
    assert lifted["/top"] == 10
    assert lifted["/top"] < lifted["/middle"] < lifted["/low"] < 900
    assert "/none" not in lifted
    assert traffic_priorities({}) == {}


def test_a_rank_orders_by_priority_then_depth() -> None:
    ranks = [link_rank(0, 3), link_rank(100, 1), link_rank(100, 2), link_rank(900, 0)]
    assert ranks == sorted(ranks)
    assert [depth_of_rank(rank) for rank in ranks] == [3, 1, 2, 0]
    assert depth_of_rank(link_rank(5, 10**9)) == depth_of_rank(link_rank(5, 2**20))


def test_the_homepage_is_the_root_of_a_host() -> None:
    assert is_homepage("https://site.test/")
    assert not is_homepage("https://site.test/a/")
    assert not is_homepage("https://site.test/?q=/")
