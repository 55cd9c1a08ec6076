-- Hosts and URLs, each stored once per organisation, and what is known of each as a place to go.
-- Not shared between organisations: which URLs somebody crawls is theirs to know.

CREATE SCHEMA frontier;
GRANT USAGE ON SCHEMA frontier TO trapline_worker, trapline_tenant;

CREATE TABLE frontier.host (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    -- As in a URL: lower case, with its port where that is not the scheme's own.
    name text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, name)
);

-- No foreign key to host: checking it would lock the one row that every insert of a crawl shares.
CREATE TABLE frontier.url (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    host_id bigint NOT NULL,
    secure boolean NOT NULL,
    -- Path and query, from the first slash on.
    path text NOT NULL CHECK (path LIKE '/%'),
    -- SHA-256 of the canonical URL.
    hash bytea NOT NULL CHECK (length(hash) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, hash)
);

CREATE INDEX url_host_idx ON frontier.url (host_id);

CREATE VIEW frontier.url_text WITH (security_invoker = true) AS
SELECT
    u.id,
    u.organisation_id,
    u.hash,
    CASE WHEN u.secure THEN 'https://' ELSE 'http://' END || h.name || u.path AS url
FROM frontier.url u
JOIN frontier.host h ON h.id = u.host_id;

-- A URL that was discovered where it may be a place to go, per site. What the log of visits also
-- knows stands here too, so that the log can be purged.
CREATE TABLE frontier.candidate (
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    discovered_at timestamptz NOT NULL DEFAULT now(),
    last_visit_at timestamptz,
    last_exit_code smallint,
    last_contentful_at timestamptz,
    last_etag text,
    last_modified timestamptz,
    -- Fading sums of repeated looks, from which the change rate is estimated.
    looks double precision NOT NULL DEFAULT 0,
    changes double precision NOT NULL DEFAULT 0,
    seconds double precision NOT NULL DEFAULT 0,
    -- Visits without content since the last one with content.
    failures integer NOT NULL DEFAULT 0,
    -- The sitemap's changefreq.
    declared text,
    due_at timestamptz,
    PRIMARY KEY (site_id, url_id)
) WITH (fillfactor = 80);

CREATE INDEX candidate_due_idx ON frontier.candidate (site_id, due_at) WHERE due_at IS NOT NULL;

-- robots.txt by origin, shared by all organisations: it is public, and asking twice is impolite.
CREATE TABLE frontier.robots (
    origin text PRIMARY KEY,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    status integer,
    exit_code smallint NOT NULL,
    body bytea NOT NULL DEFAULT ''
);

SELECT tenancy.isolate('frontier.host');
SELECT tenancy.isolate('frontier.url');
SELECT tenancy.isolate('frontier.candidate');
GRANT SELECT ON frontier.url_text TO trapline_worker, trapline_tenant;
-- Who else asked for a host's robots.txt is no tenant's business.
GRANT SELECT, INSERT, UPDATE, DELETE ON frontier.robots TO trapline_worker;
