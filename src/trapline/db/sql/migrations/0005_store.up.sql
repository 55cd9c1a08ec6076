-- What was found: sites, their pages, the versions of a page, and bytes by their hash.

CREATE SCHEMA store;
GRANT USAGE ON SCHEMA store TO trapline_worker, trapline_tenant;

CREATE TABLE store.site (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 300),
    -- By what it is found and sorted. A column, since row-level security lets no function of one be
    -- looked up in an index.
    name_key text NOT NULL GENERATED ALWAYS AS (lower(name)) STORED,
    base_url text NOT NULL,
    -- Made by a scrape or crawl that named none: one per organisation and host.
    implicit boolean NOT NULL DEFAULT false,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'inactive')),
    -- How it is crawled, as pipeline/site_config.py reads it; store.site_config has the history.
    config jsonb NOT NULL DEFAULT '{}',
    config_number integer NOT NULL DEFAULT 1,
    created_by text CHECK (length(created_by) <= 300),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- A deleted site keeps its rows until it is purged, but its name is free again.
    deleted_at timestamptz,
    purge boolean NOT NULL DEFAULT false CHECK (NOT purge OR deleted_at IS NOT NULL)
);

CREATE UNIQUE INDEX site_name_key ON store.site (organisation_id, name_key)
WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX site_implicit_key ON store.site (organisation_id, base_url)
WHERE implicit AND deleted_at IS NULL;
CREATE INDEX site_listing_idx ON store.site (organisation_id, created_at, id)
WHERE deleted_at IS NULL;
CREATE INDEX site_updated_idx ON store.site (organisation_id, updated_at, id)
WHERE deleted_at IS NULL;
CREATE INDEX site_status_idx ON store.site (organisation_id, status, created_at, id)
WHERE deleted_at IS NULL;
CREATE INDEX site_config_idx ON store.site USING gin (config jsonb_path_ops);
CREATE INDEX site_purge_idx ON store.site (id) WHERE purge;

-- A URL's place in a site, with what its latest version is.
CREATE TABLE store.page (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL REFERENCES store.site (id) ON DELETE CASCADE,
    url_id bigint NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    -- Null until the first version.
    version_id bigint,
    version_number integer NOT NULL DEFAULT 0,
    content_hash bytea,
    extractor_version smallint,
    changed_at timestamptz,
    gone_at timestamptz,
    -- When it was last seen again after it had been gone.
    returned_at timestamptz,
    UNIQUE (site_id, url_id)
) WITH (fillfactor = 80);

-- Ids are in the order in which pages were first seen. When a page was last seen is in no index, or
-- every sighting would write to all of them.
CREATE INDEX page_organisation_idx ON store.page (organisation_id, id);
-- When its content last became what it is; a page without content, when it was first seen. Neither
-- moves with a mere sighting.
CREATE INDEX page_changed_idx ON store.page
(organisation_id, (CASE WHEN changed_at IS NULL THEN first_seen_at ELSE changed_at END), id);
CREATE INDEX page_site_changed_idx ON store.page
(site_id, (CASE WHEN changed_at IS NULL THEN first_seen_at ELSE changed_at END), id);
CREATE INDEX page_url_idx ON store.page (url_id);

CREATE TABLE store.version (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    page_id uuid NOT NULL REFERENCES store.page (id) ON DELETE CASCADE,
    number integer NOT NULL,
    visit_id bigint NOT NULL,
    job_id uuid,
    fetched_at timestamptz NOT NULL,
    -- SHA-256 of the normalised main text, made by this version of the extractor.
    content_hash bytea NOT NULL CHECK (length(content_hash) = 32),
    extractor_version smallint NOT NULL,
    status smallint,
    -- As the server said, so that the bytes can be read again in the same way.
    content_type text,
    title text,
    language text,
    page_type text,
    text text NOT NULL,
    markdown text NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    links jsonb NOT NULL DEFAULT '[]',
    warning text,
    -- The bytes that it was extracted from, in store.blob.
    sha256 bytea,
    UNIQUE (page_id, number)
);

-- To compress them took longer than all else that store.record does:
-- docs/decisions/048-texts-are-not-compressed.md.
ALTER TABLE store.version
    ALTER COLUMN text SET STORAGE EXTERNAL, ALTER COLUMN markdown SET STORAGE EXTERNAL;

CREATE INDEX version_job_idx ON store.version (job_id, id);
CREATE INDEX version_content_hash_idx ON store.version (content_hash);
CREATE INDEX version_sha256_idx ON store.version (sha256) WHERE sha256 IS NOT NULL;

-- Bytes by their SHA-256, stored once, whoever they belong to.
CREATE TABLE store.blob (
    sha256 bytea PRIMARY KEY CHECK (length(sha256) = 32),
    size bigint NOT NULL,
    -- Where they are: db (in data), or a file or object that the place names.
    place text NOT NULL DEFAULT 'db',
    -- zstd, or as they are where that is no smaller.
    compressed boolean NOT NULL,
    data bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When mark and sweep last found a use; what is unused for longer than the grace is swept.
    used_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((place = 'db') = (data IS NOT NULL))
);

-- They are compressed already: PostgreSQL need not try again.
ALTER TABLE store.blob ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX blob_used_idx ON store.blob (used_at);

-- A page as one visit found it, on its way in. Without a content hash it was not modified.
CREATE TYPE store.new_sighting AS (
    page_id uuid,
    organisation_id uuid,
    site_id uuid,
    url_id bigint,
    visit_id bigint,
    job_id uuid,
    seen_at timestamptz,
    -- How often it was seen in its batch.
    times integer,
    -- The version that it was compared with, and whether they differ in nothing that counts.
    compared_with bigint,
    alike boolean,
    added_lines integer,
    removed_lines integer,
    added_words integer,
    removed_words integer,
    status smallint,
    content_hash bytea,
    extractor_version smallint,
    content_type text,
    title text,
    language text,
    page_type text,
    text text,
    markdown text,
    metadata text,
    links text,
    warning text,
    sha256 bytea
);

-- What a sighting means for its page, as that was found: 0 a new one, 1 nothing new, 2 a changed one.
CREATE TYPE store.find AS (
    page_id uuid,
    is_new boolean,
    -- The version that it had.
    before_id bigint,
    version_id bigint,
    number integer,
    change smallint,
    returned boolean,
    -- Its text is not the last one, whether that counts or not.
    differs boolean
);

-- What a sighting led to.
CREATE TYPE store.seen AS (
    page_id uuid,
    version_id bigint,
    number integer,
    change smallint
);

SELECT tenancy.isolate('store.site');
SELECT tenancy.isolate('store.page');
SELECT tenancy.isolate('store.version');
-- Bytes belong to whoever has a version or a file with them.
SELECT tenancy.isolate(
    'store.blob',
    'EXISTS (SELECT FROM store.version v WHERE v.sha256 = blob.sha256)'
    ' OR EXISTS (SELECT FROM archive.file f WHERE f.sha256 = blob.sha256)'
);
REVOKE INSERT, UPDATE, DELETE ON store.blob FROM trapline_tenant;
-- Whoever writes versions numbers them first.
GRANT USAGE ON SEQUENCE store.version_id_seq TO trapline_worker, trapline_tenant;
