"""Which URL may be fetched, and when: canonical form, scope, robots, sitemaps, politeness.

In: links and the job's scope. Out: decisions and URL rows.
Owns the schema `frontier`: host, url, robots, candidate.
"""

from trapline.frontier.robots import robots_allows
from trapline.frontier.url import canonical

__all__ = ["canonical", "robots_allows"]
