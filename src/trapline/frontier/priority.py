"""Priorities of links, from scores: which pages of a job run first.

A score is between 0 and 1, higher first: 1 for the homepage and the links of its header, .99 for
those of its footer, .9 of its parent's for any other link, .1 for an entry of a sitemap, and for a
page with known traffic by the logarithm of its views. A page has the highest of its scores. The
priority of a task is its distance from 1 in thousandths: lower runs first, as everywhere inside.
"""

from collections.abc import Mapping
from math import log1p

from trapline.model import Region

SEED_PRIORITY = 0
LOWEST_PRIORITY = 1000
_FOOTER_PRIORITY = 10
_SITEMAP_PRIORITY = 900
# The priority that a sitemap states moves an entry so far at most, up or down.
_STATED_RANGE = 4
_NEUTRAL = 0.5
_MOST_VIEWED_PRIORITY = 10
_TRAFFIC_RANGE = 890
_DEPTH_BITS = 20
_DEEPEST = (1 << _DEPTH_BITS) - 1


def link_priority(parent: int, region: str = Region.BODY, *, on_homepage: bool = False) -> int:
    """Return the priority of a link on a page of priority `parent`."""
    if on_homepage and region in (Region.HEADER, Region.NAV):
        return SEED_PRIORITY
    if on_homepage and region == Region.FOOTER:
        return _FOOTER_PRIORITY
    return LOWEST_PRIORITY - max(LOWEST_PRIORITY - parent, 0) * 9 // 10


def sitemap_priority(stated: float | None) -> int:
    """Return the priority of a page that a sitemap names."""
    weight = _NEUTRAL if stated is None else min(max(stated, 0.0), 1.0)
    return _SITEMAP_PRIORITY + round(2 * _STATED_RANGE * (_NEUTRAL - weight))


def traffic_priorities(views: Mapping[str, int]) -> dict[str, int]:
    """Return priorities by path: scores from .1 to .99, by the logarithm of the views."""
    most = log1p(max(views.values(), default=0))
    return {
        path: _MOST_VIEWED_PRIORITY + round(_TRAFFIC_RANGE * (1 - log1p(count) / most))
        for path, count in views.items()
        if count > 0
    }


def link_rank(priority: int, depth: int) -> int:
    """Return one number that orders links by priority, then by depth; lower is better."""
    return priority << _DEPTH_BITS | min(depth, _DEEPEST)


def priority_of_rank(rank: int) -> int:
    return rank >> _DEPTH_BITS


def depth_of_rank(rank: int) -> int:
    return rank & _DEEPEST


def is_homepage(url: str) -> bool:
    """Whether a canonical URL is the root of its host."""
    return url.endswith("/") and url.count("/") == 3  # noqa: PLR2004 (scheme://host/)
