"""Sitemaps in every form that is found: XML, index, gzip, plain text, RSS, Atom.

In: bytes, chunk by chunk. Out: entries as soon as they are complete, and what was wrong in words.
Nothing in a sitemap is an error: what can be read is read, and everything is bounded.
"""

from trapline.frontier.sitemaps.entry import EntryKind, SitemapEntry
from trapline.frontier.sitemaps.places import MAX_INDEX_DEPTH, likely_sitemaps
from trapline.frontier.sitemaps.reader import SitemapReader

__all__ = ["MAX_INDEX_DEPTH", "EntryKind", "SitemapEntry", "SitemapReader", "likely_sitemaps"]
