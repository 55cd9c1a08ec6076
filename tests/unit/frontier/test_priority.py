from trapline.frontier.priority import (
    LOWEST_PRIORITY,
    SEED_PRIORITY,
    from_descending,
    link_priority,
    sitemap_priority,
)


def test_lower_runs_first() -> None:
    order = [
        SEED_PRIORITY,
        link_priority(1, "header"),
        link_priority(1, "nav"),
        link_priority(1, "body"),
        link_priority(1, "footer"),
        link_priority(2, "header"),
    ]
    assert order == sorted(set(order))


def test_an_unknown_place_counts_as_the_body() -> None:
    assert link_priority(3, "aside") == link_priority(3, "body") == link_priority(3)


def test_a_sitemap_page_runs_with_the_first_links() -> None:
    assert sitemap_priority(1.0) < sitemap_priority(None) == sitemap_priority(0.5)
    assert sitemap_priority(0.5) < sitemap_priority(0.0) <= link_priority(1, "footer")
    assert SEED_PRIORITY < sitemap_priority(1.0) <= link_priority(1, "header")


def test_priorities_are_small() -> None:
    assert link_priority(10**9, "footer") <= LOWEST_PRIORITY
    assert link_priority(-5) >= SEED_PRIORITY


def test_scales_that_rise_are_turned_round() -> None:
    assert [from_descending(score, 10) for score in (10, 5, 1, 99)] == [0, 5, 9, 0]
