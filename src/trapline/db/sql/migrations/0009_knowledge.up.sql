-- What search reads: sources, what they hold, its passages, and the keyword index over those.

CREATE SCHEMA knowledge;
GRANT USAGE ON SCHEMA knowledge TO trapline_worker, trapline_tenant;

CREATE TABLE knowledge.application (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 300),
    -- How often its sources are fetched again, unless they say otherwise.
    rescrape_every interval CHECK (rescrape_every >= '1 minute'),
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX application_name_key ON knowledge.application (organisation_id, lower(name));

CREATE TABLE knowledge.source (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    application_id uuid REFERENCES knowledge.application (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('file', 'url', 'site')),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 300),
    uri text NOT NULL,
    site_id uuid,
    status text NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    error text,
    -- How its texts are cut and embedded; frozen with each job, so that retries do the same.
    config jsonb NOT NULL DEFAULT '{}',
    -- Passages of this generation are found; those of a later one are not complete yet.
    generation integer NOT NULL DEFAULT 0,
    rescrape_every interval CHECK (rescrape_every >= '1 minute'),
    -- Limits and options of whoever asked last, so that it is fetched again in the same way.
    fetching jsonb NOT NULL DEFAULT '{}',
    -- Who fetches it: we, or a Firecrawl elsewhere that tells us of its pages.
    provider text NOT NULL DEFAULT 'trapline' CHECK (provider IN ('trapline', 'firecrawl')),
    -- The latest job that fills it. While that is open, the source is being processed.
    job_id uuid,
    -- The latest job that makes its texts anew with another config.
    renewal_job_id uuid,
    -- The bytes of a file, in store.blob.
    sha256 bytea CHECK (length(sha256) = 32),
    size bigint,
    content_type text,
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX source_application_idx ON knowledge.source (application_id, created_at, id);
CREATE INDEX source_organisation_idx ON knowledge.source (organisation_id, created_at, id);
CREATE INDEX source_job_idx ON knowledge.source (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX source_sha256_idx ON knowledge.source (sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX source_uri_idx ON knowledge.source (organisation_id, md5(uri));
-- What a crawl finds that names no source belongs to its site's own.
CREATE UNIQUE INDEX source_site_key ON knowledge.source (organisation_id, site_id)
WHERE site_id IS NOT NULL AND application_id IS NULL;

-- One text of a source: a file, or a page as it was.
CREATE TABLE knowledge.entry (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    source_id uuid NOT NULL REFERENCES knowledge.source (id) ON DELETE CASCADE,
    generation integer NOT NULL,
    uri text NOT NULL,
    path text NOT NULL DEFAULT '',
    title text,
    language text NOT NULL DEFAULT 'xx',
    content_type text,
    page_id uuid,
    version_id bigint,
    content_hash bytea NOT NULL CHECK (length(content_hash) = 32),
    -- The text that passages are slices of; null where a page's version holds it.
    markdown text,
    dated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (source_id, generation, uri)
);

-- What filters ask for.
CREATE INDEX entry_page_idx ON knowledge.entry (page_id) WHERE page_id IS NOT NULL;
CREATE INDEX entry_dated_idx ON knowledge.entry (organisation_id, dated_at);
CREATE INDEX entry_language_idx ON knowledge.entry (organisation_id, language);
CREATE INDEX entry_type_idx ON knowledge.entry (organisation_id, content_type);
CREATE INDEX entry_path_idx ON knowledge.entry (organisation_id, path text_pattern_ops);
CREATE INDEX entry_uri_idx ON knowledge.entry USING hash (uri);

CREATE TABLE knowledge.chunk (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    source_id uuid NOT NULL REFERENCES knowledge.source (id) ON DELETE CASCADE,
    entry_id bigint NOT NULL REFERENCES knowledge.entry (id) ON DELETE CASCADE,
    ordinal integer NOT NULL,
    -- Its place in the entry's text.
    starts_at integer NOT NULL,
    ends_at integer NOT NULL,
    headings text[] NOT NULL,
    words text NOT NULL,
    tokens integer NOT NULL,
    -- SHA-256 of headings and words: what did not change is not embedded again.
    hash bytea NOT NULL CHECK (length(hash) = 32),
    UNIQUE (entry_id, ordinal)
);

CREATE INDEX chunk_source_idx ON knowledge.chunk (source_id);
CREATE INDEX chunk_hash_idx ON knowledge.chunk USING hash (hash);

-- The keyword index. A segment never changes: new passages are a new one, and small ones are
-- merged into larger ones, which is also when passages that are gone leave it.
CREATE TABLE knowledge.segment (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    language text NOT NULL,
    analysis_version smallint NOT NULL,
    texts integer NOT NULL,
    -- Terms of all texts together.
    length bigint NOT NULL,
    -- Eight bytes a text: the chunk that each ordinal means, and the entry that it is of.
    chunk_ids bytea NOT NULL,
    entry_ids bytea NOT NULL
);

CREATE INDEX segment_organisation_idx ON knowledge.segment (organisation_id, language);

CREATE TABLE knowledge.posting (
    organisation_id uuid NOT NULL,
    segment_id bigint NOT NULL REFERENCES knowledge.segment (id) ON DELETE CASCADE,
    term text COLLATE "C" NOT NULL,
    -- The first part says how many texts have the term, what bounds its weight in them, and the
    -- first ordinal (four bytes) of every part where there are several.
    part integer NOT NULL,
    texts integer NOT NULL,
    most smallint NOT NULL,
    shortest smallint NOT NULL,
    starts bytea,
    -- Six bytes a posting: ordinals, then counts, then length codes.
    postings bytea NOT NULL,
    PRIMARY KEY (segment_id, term, part)
);

-- A part is read with its row or not at all.
ALTER TABLE knowledge.posting ALTER COLUMN postings SET STORAGE MAIN;

SELECT tenancy.isolate('knowledge.application');
SELECT tenancy.isolate('knowledge.source');
SELECT tenancy.isolate('knowledge.entry');
SELECT tenancy.isolate('knowledge.chunk');
SELECT tenancy.isolate('knowledge.segment');
SELECT tenancy.isolate('knowledge.posting');
