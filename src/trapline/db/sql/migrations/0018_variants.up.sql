-- How a page was asked for: its headers, language, device, proxy … change what a server answers.
-- `variant` is a hash of them (pipeline/options.py), and empty for a request like any other.

-- One implicit site for each organisation, host and variant.
ALTER TABLE store.site ADD COLUMN variant bytea NOT NULL DEFAULT '';
-- An organisation has few sites, so the lock is short.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX store.site_implicit_key;
-- squawk-ignore require-concurrent-index-creation
CREATE UNIQUE INDEX site_implicit_key ON store.site (organisation_id, base_url, variant)
WHERE implicit AND deleted_at IS NULL;

-- Nobody knows how the rows before this migration were asked for. They get a variant that no request
-- has, so they answer nobody. These defaults rewrite no table.
ALTER TABLE store.version ADD COLUMN variant bytea NOT NULL DEFAULT '\x00';
ALTER TABLE store.version ALTER COLUMN variant SET DEFAULT '';
-- That of its latest version.
ALTER TABLE store.page ADD COLUMN variant bytea NOT NULL DEFAULT '\x00';
ALTER TABLE store.page ALTER COLUMN variant SET DEFAULT '';
ALTER TYPE store.new_sighting ADD ATTRIBUTE variant bytea;

ALTER TABLE store.snapshot ADD COLUMN variant bytea NOT NULL DEFAULT '\x00';
ALTER TABLE store.snapshot ALTER COLUMN variant SET DEFAULT '';
-- Only what somebody tracks has a snapshot, so the lock is short.
-- squawk-ignore ban-drop-constraint
ALTER TABLE store.snapshot DROP CONSTRAINT snapshot_pkey;
-- squawk-ignore adding-serial-primary-key-field, constraint-missing-not-valid
ALTER TABLE store.snapshot ADD PRIMARY KEY (organisation_id, url_hash, tag, variant);
