"""Sitemaps: XML, index, gzip, plain text, RSS, Atom.

In: bytes, chunk by chunk. Out: entries as soon as they are complete, and a sentence for each fault.
Nothing in a sitemap raises an error, and everything is bounded.
"""

from trapline.frontier.sitemaps.default_locations import MAX_INDEX_DEPTH, likely_sitemaps
from trapline.frontier.sitemaps.entry import EntryKind, SitemapEntry
from trapline.frontier.sitemaps.reader import SitemapReader

__all__ = ["MAX_INDEX_DEPTH", "EntryKind", "SitemapEntry", "SitemapReader", "likely_sitemaps"]
