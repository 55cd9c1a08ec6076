"""robots.txt by RFC 9309; decision 031 says why the parser is our own.

In: bytes and a user agent. Out: allowed URLs, the crawl delay, the sitemaps.
"""

import ada_url

from trapline.frontier.robots.availability import RobotsPolicy, policy_for
from trapline.frontier.robots.parser import MAX_ROBOTS_BYTES, Robots, parse_robots
from trapline.frontier.robots.rules import Access

__all__ = [
    "MAX_ROBOTS_BYTES",
    "Access",
    "Robots",
    "RobotsPolicy",
    "parse_robots",
    "policy_for",
    "robots_allows",
]


def robots_allows(robots_txt: bytes, user_agent: str, url: str) -> bool:
    """Whether this robots.txt lets this agent fetch this URL; `url` is absolute or a path."""
    access = parse_robots(robots_txt).access(user_agent)
    return access.allows(ada_url.normalize_url(url) if ada_url.check_url(url) else url)
