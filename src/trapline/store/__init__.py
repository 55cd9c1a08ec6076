"""Sites, pages and their versions, duplicates, blobs.

In: a Document and its visit. Out: a new page version, or the finding that nothing changed.
Owns the schema `store`: site, page, version, blob, content_hash, change.
"""
