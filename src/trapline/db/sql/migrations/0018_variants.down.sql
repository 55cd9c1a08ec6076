-- Without variants there is one snapshot of a URL and tag: that of plain requests.
DELETE FROM store.snapshot WHERE variant <> '';
ALTER TABLE store.snapshot
    DROP CONSTRAINT snapshot_pkey,
    ADD PRIMARY KEY (organisation_id, url_hash, tag);
ALTER TABLE store.snapshot DROP COLUMN variant;

ALTER TYPE store.new_sighting DROP ATTRIBUTE variant;
ALTER TABLE store.page DROP COLUMN variant;
ALTER TABLE store.version DROP COLUMN variant;

-- The sites of other variants keep their pages under their names; no plain scrape is given those.
UPDATE store.site SET implicit = false WHERE variant <> '';
DROP INDEX store.site_implicit_key;
CREATE UNIQUE INDEX site_implicit_key ON store.site (organisation_id, base_url)
WHERE implicit AND deleted_at IS NULL;
ALTER TABLE store.site DROP COLUMN variant;
