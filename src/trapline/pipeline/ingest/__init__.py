"""Files, pages and sites become knowledge sources: uploads, indexing, refreshes, inbound webhooks.

In: bytes, URLs and the webhooks of a remote Firecrawl. Out: passages that search finds.
Owns no table: `knowledge` and `queue` own the rows.
"""
