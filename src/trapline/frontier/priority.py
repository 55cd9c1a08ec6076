"""Which links of a job go first. A small integer, lower runs first, as everywhere inside.

Depth weighs most, so a crawl goes broad before deep; then where the link stands on its page; then
what the sitemap says. Other conventions are translated at the edge.
"""

SEED_PRIORITY = 0
LOWEST_PRIORITY = 1000
_PER_LEVEL = 10
_DEEPEST = 99
# A site's header and navigation lead to what its makers find important; its footer does not.
_REGION = {"header": 1, "nav": 2, "body": 4, "footer": 8}
_NEUTRAL = 0.5


def link_priority(depth: int, region: str = "body") -> int:
    """The priority of a link found on a page, `depth` links away from the start.

    `region` is header, nav, body or footer; any other counts as the body.
    """
    level = min(max(depth, 0), _DEEPEST)
    return min(level * _PER_LEVEL + _REGION.get(region, _REGION["body"]), LOWEST_PRIORITY)


def sitemap_priority(stated: float | None) -> int:
    """The priority of a page that a sitemap names: one link from the start, moved by its weight."""
    weight = _NEUTRAL if stated is None else min(max(stated, 0.0), 1.0)
    return _PER_LEVEL + round(_REGION["footer"] * (1 - weight))


def from_descending(score: int, highest: int) -> int:
    """Translate a scale on which more is more urgent, such as 1 to 10."""
    return max(highest - score, 0)
