"""Sites, pages and their versions, duplicates, changes, blobs.

In: a Document and its visit. Out: a new page version, or none if nothing changed.
Owns the schema `store`: site, site_config, page, version, blob, change, sighting, content_hash,
duplicate_group, fingerprint, likeness, snapshot, fleeting, sweep.
"""
