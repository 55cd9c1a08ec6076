"""URL frontier: canonical form, scope, robots.txt, sitemaps, politeness, recrawl.

In: links and the job's scope. Out: decisions and URL rows.
Owns the schema `frontier`: host, url, robots, candidate.
"""

from trapline.frontier.canonical_url import canonical
from trapline.frontier.robots import robots_allows

__all__ = ["canonical", "robots_allows"]
