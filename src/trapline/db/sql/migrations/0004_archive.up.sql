-- The provenance of every byte. All four logs are partitioned by the month in which the visit
-- started, and go together when their time is over.

CREATE SCHEMA archive;
GRANT USAGE ON SCHEMA archive TO trapline_worker, trapline_tenant;

CREATE TABLE archive.mimetype (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);

-- One finished attempt at a URL.
CREATE TABLE archive.visit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    organisation_id uuid NOT NULL,
    uuid uuid NOT NULL,
    agent_id bigint,
    job_id uuid,
    task_id bigint,
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    crawl_type smallint NOT NULL,
    started_at timestamptz NOT NULL,
    took_ms integer NOT NULL,
    exit_code smallint NOT NULL,
    message text,
    PRIMARY KEY (started_at, id)
) PARTITION BY RANGE (started_at);

CREATE INDEX visit_quickinfo_idx ON archive.visit (url_id, started_at, exit_code);
CREATE INDEX visit_job_idx ON archive.visit (job_id, id);
-- A site is purged, and exported, by its visits.
CREATE INDEX visit_site_idx ON archive.visit (site_id, started_at, id);

-- One request of a visit; `number` is its place on the way.
CREATE TABLE archive.request (
    visit_id bigint NOT NULL,
    started_at timestamptz NOT NULL,
    number smallint NOT NULL,
    organisation_id uuid NOT NULL,
    url_id bigint NOT NULL,
    sent_at timestamptz NOT NULL,
    total_ms real,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    robots_approved boolean NOT NULL,
    exit_code smallint NOT NULL,
    status smallint,
    etag text,
    last_modified timestamptz,
    remote_address text,
    PRIMARY KEY (started_at, visit_id, number)
) PARTITION BY RANGE (started_at);

CREATE TABLE archive.redirect (
    visit_id bigint NOT NULL,
    started_at timestamptz NOT NULL,
    number smallint NOT NULL,
    organisation_id uuid NOT NULL,
    -- Null where no request was answered with it, as when a known policy upgrades to https.
    request_number smallint,
    url_id bigint NOT NULL,
    to_url_id bigint NOT NULL,
    -- 1 HTTP, 2 HSTS, 3 meta refresh, 4 canonical
    source smallint NOT NULL,
    is_permanent boolean NOT NULL,
    by_security_policy boolean NOT NULL,
    last_modified timestamptz,
    PRIMARY KEY (started_at, visit_id, number)
) PARTITION BY RANGE (started_at);

CREATE TABLE archive.file (
    visit_id bigint NOT NULL,
    started_at timestamptz NOT NULL,
    organisation_id uuid NOT NULL,
    -- Null for a file that came from a dump and not from a request.
    request_number smallint,
    url_id bigint NOT NULL,
    last_modified timestamptz,
    size bigint,
    mimetype_id integer NOT NULL,
    canonical_url_id bigint,
    charset text,
    -- The headers of the answer that brought it, as pairs of name and value.
    headers jsonb,
    -- Its bytes, as store.blob keeps them.
    sha256 bytea,
    PRIMARY KEY (started_at, visit_id)
) PARTITION BY RANGE (started_at);

CREATE INDEX file_sha256_idx ON archive.file (sha256) WHERE sha256 IS NOT NULL;

-- Maintenance makes the partitions of the months to come; the default one holds what is before them.
CREATE TABLE archive.visit_default PARTITION OF archive.visit DEFAULT;
CREATE TABLE archive.request_default PARTITION OF archive.request DEFAULT;
CREATE TABLE archive.redirect_default PARTITION OF archive.redirect DEFAULT;
CREATE TABLE archive.file_default PARTITION OF archive.file DEFAULT;

-- Visits on their way in, with what belongs to them: `visit` is the place of theirs in the batch.
CREATE TYPE archive.new_visit AS (
    organisation_id uuid,
    uuid uuid,
    agent_id bigint,
    job_id uuid,
    task_id bigint,
    site_id uuid,
    url_id bigint,
    crawl_type smallint,
    started_at timestamptz,
    took_ms integer,
    exit_code smallint,
    message text
);

CREATE TYPE archive.new_request AS (
    visit integer,
    number smallint,
    url_id bigint,
    sent_at timestamptz,
    total_ms real,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    robots_approved boolean,
    exit_code smallint,
    status smallint,
    etag text,
    last_modified timestamptz,
    remote_address text
);

CREATE TYPE archive.new_redirect AS (
    visit integer,
    number smallint,
    request_number smallint,
    url_id bigint,
    to_url_id bigint,
    source smallint,
    is_permanent boolean,
    by_security_policy boolean,
    last_modified timestamptz
);

CREATE TYPE archive.new_file AS (
    visit integer,
    request_number smallint,
    url_id bigint,
    last_modified timestamptz,
    size bigint,
    media_type text,
    canonical_url_id bigint,
    charset text,
    headers text,
    sha256 bytea
);

SELECT tenancy.share('archive.mimetype');
SELECT tenancy.isolate(t)
FROM unnest(ARRAY[
    'archive.visit', 'archive.request', 'archive.redirect', 'archive.file',
    'archive.visit_default', 'archive.request_default', 'archive.redirect_default',
    'archive.file_default'
]::regclass[]) AS t;
-- Whoever records visits numbers them first.
GRANT USAGE ON SEQUENCE archive.visit_id_seq TO trapline_worker, trapline_tenant;
