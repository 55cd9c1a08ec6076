"""robots.txt by RFC 9309, meta robots and X-Robots-Tag; decision 031 says why this is our own.

In: bytes and a user agent. Out: may this URL be fetched, how fast, and where are the sitemaps.
"""

import ada_url

from trapline.frontier.robots.availability import RobotsPolicy, policy_for
from trapline.frontier.robots.directives import Directives, page_directives
from trapline.frontier.robots.file import MAX_ROBOTS_BYTES, Robots, parse_robots
from trapline.frontier.robots.rules import Access

__all__ = [
    "MAX_ROBOTS_BYTES",
    "Access",
    "Directives",
    "Robots",
    "RobotsPolicy",
    "page_directives",
    "parse_robots",
    "policy_for",
    "robots_allows",
]


def robots_allows(robots_txt: bytes, user_agent: str, url: str) -> bool:
    """Whether this robots.txt lets this agent fetch this URL; `url` is absolute or a path."""
    access = parse_robots(robots_txt).access(user_agent)
    return access.allows(ada_url.normalize_url(url) if ada_url.check_url(url) else url)
