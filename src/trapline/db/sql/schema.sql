-- The whole schema, made by `make sql` from migrations/ and functions/: edit those instead.
SET check_function_bodies = false;

CREATE SCHEMA archive;

CREATE SCHEMA auth;

CREATE SCHEMA frontier;

CREATE SCHEMA store;

CREATE SCHEMA tenancy;

CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;

COMMENT ON EXTENSION pg_trgm IS 'text similarity measurement and index searching based on trigrams';

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';

CREATE FUNCTION auth.uid() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('trapline.member_id'::text, true), ''::text))::uuid;

COMMENT ON FUNCTION auth.uid() IS 'The member who acts in this transaction; null when an API key acts for its organisation.';

CREATE FUNCTION tenancy.current_organisation() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('trapline.organisation_id'::text, true), ''::text))::uuid;

COMMENT ON FUNCTION tenancy.current_organisation() IS 'The organisation of this transaction; null outside of one, so that no row matches.';

CREATE FUNCTION tenancy.isolate(target regclass, predicate text DEFAULT 'organisation_id = (SELECT tenancy.current_organisation())'::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO trapline_tenant USING (%s)', target, predicate);
    -- The owner inherits this one from its membership, or migrations and backups would see nothing.
    EXECUTE format('CREATE POLICY worker ON %s TO trapline_worker USING (true)', target);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO trapline_tenant, trapline_worker', target);
END
$$;

COMMENT ON FUNCTION tenancy.isolate(target regclass, predicate text) IS 'Give a table that belongs to organisations its row-level security and its grants.';

CREATE FUNCTION tenancy.share(target regclass) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO trapline_worker', target);
    EXECUTE format('GRANT SELECT ON %s TO trapline_tenant', target);
END
$$;

COMMENT ON FUNCTION tenancy.share(target regclass) IS 'Grant a table that belongs to no organisation: workers write it, tenants read it.';

CREATE TABLE archive.file (
    visit_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    organisation_id uuid NOT NULL,
    request_number smallint,
    url_id bigint NOT NULL,
    last_modified timestamp with time zone,
    size bigint,
    mimetype_id integer NOT NULL,
    canonical_url_id bigint,
    charset text,
    sha256 bytea
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.file FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.file_default (
    visit_id bigint CONSTRAINT file_visit_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT file_started_at_not_null NOT NULL,
    organisation_id uuid CONSTRAINT file_organisation_id_not_null NOT NULL,
    request_number smallint,
    url_id bigint CONSTRAINT file_url_id_not_null NOT NULL,
    last_modified timestamp with time zone,
    size bigint,
    mimetype_id integer CONSTRAINT file_mimetype_id_not_null NOT NULL,
    canonical_url_id bigint,
    charset text,
    sha256 bytea
);

ALTER TABLE ONLY archive.file_default FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.mimetype (
    id integer NOT NULL,
    name text NOT NULL
);

ALTER TABLE archive.mimetype ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME archive.mimetype_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE archive.redirect (
    visit_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    number smallint NOT NULL,
    organisation_id uuid NOT NULL,
    request_number smallint,
    url_id bigint NOT NULL,
    to_url_id bigint NOT NULL,
    source smallint NOT NULL,
    is_permanent boolean NOT NULL,
    by_security_policy boolean NOT NULL,
    last_modified timestamp with time zone
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.redirect FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.redirect_default (
    visit_id bigint CONSTRAINT redirect_visit_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT redirect_started_at_not_null NOT NULL,
    number smallint CONSTRAINT redirect_number_not_null NOT NULL,
    organisation_id uuid CONSTRAINT redirect_organisation_id_not_null NOT NULL,
    request_number smallint,
    url_id bigint CONSTRAINT redirect_url_id_not_null NOT NULL,
    to_url_id bigint CONSTRAINT redirect_to_url_id_not_null NOT NULL,
    source smallint CONSTRAINT redirect_source_not_null NOT NULL,
    is_permanent boolean CONSTRAINT redirect_is_permanent_not_null NOT NULL,
    by_security_policy boolean CONSTRAINT redirect_by_security_policy_not_null NOT NULL,
    last_modified timestamp with time zone
);

ALTER TABLE ONLY archive.redirect_default FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.request (
    visit_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    number smallint NOT NULL,
    organisation_id uuid NOT NULL,
    url_id bigint NOT NULL,
    sent_at timestamp with time zone NOT NULL,
    total_ms real,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    robots_approved boolean NOT NULL,
    exit_code smallint NOT NULL,
    status smallint,
    etag text,
    last_modified timestamp with time zone,
    remote_address text
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.request FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.request_default (
    visit_id bigint CONSTRAINT request_visit_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT request_started_at_not_null NOT NULL,
    number smallint CONSTRAINT request_number_not_null NOT NULL,
    organisation_id uuid CONSTRAINT request_organisation_id_not_null NOT NULL,
    url_id bigint CONSTRAINT request_url_id_not_null NOT NULL,
    sent_at timestamp with time zone CONSTRAINT request_sent_at_not_null NOT NULL,
    total_ms real,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    robots_approved boolean CONSTRAINT request_robots_approved_not_null NOT NULL,
    exit_code smallint CONSTRAINT request_exit_code_not_null NOT NULL,
    status smallint,
    etag text,
    last_modified timestamp with time zone,
    remote_address text
);

ALTER TABLE ONLY archive.request_default FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.visit (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    uuid uuid NOT NULL,
    agent_id bigint,
    job_id uuid,
    task_id bigint,
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    crawl_type smallint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    took_ms integer NOT NULL,
    exit_code smallint NOT NULL,
    message text
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.visit FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.visit_default (
    id bigint CONSTRAINT visit_id_not_null NOT NULL,
    organisation_id uuid CONSTRAINT visit_organisation_id_not_null NOT NULL,
    uuid uuid CONSTRAINT visit_uuid_not_null NOT NULL,
    agent_id bigint,
    job_id uuid,
    task_id bigint,
    site_id uuid CONSTRAINT visit_site_id_not_null NOT NULL,
    url_id bigint CONSTRAINT visit_url_id_not_null NOT NULL,
    crawl_type smallint CONSTRAINT visit_crawl_type_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT visit_started_at_not_null NOT NULL,
    took_ms integer CONSTRAINT visit_took_ms_not_null NOT NULL,
    exit_code smallint CONSTRAINT visit_exit_code_not_null NOT NULL,
    message text
);

ALTER TABLE ONLY archive.visit_default FORCE ROW LEVEL SECURITY;

ALTER TABLE archive.visit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME archive.visit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frontier.candidate (
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    discovered_at timestamp with time zone DEFAULT now() NOT NULL,
    last_visit_at timestamp with time zone,
    last_exit_code smallint,
    last_contentful_at timestamp with time zone,
    last_etag text,
    last_modified timestamp with time zone,
    visits integer DEFAULT 0 NOT NULL,
    changes integer DEFAULT 0 NOT NULL,
    gone integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone
)
WITH (fillfactor='80');

ALTER TABLE ONLY frontier.candidate FORCE ROW LEVEL SECURITY;

CREATE TABLE frontier.host (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT host_name_check CHECK ((name <> ''::text))
);

ALTER TABLE ONLY frontier.host FORCE ROW LEVEL SECURITY;

ALTER TABLE frontier.host ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME frontier.host_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frontier.robots (
    origin text NOT NULL,
    fetched_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    status integer,
    exit_code smallint NOT NULL,
    body bytea DEFAULT '\x'::bytea NOT NULL
);

CREATE TABLE frontier.url (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    host_id bigint NOT NULL,
    secure boolean NOT NULL,
    path text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT url_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT url_path_check CHECK ((path ~~ '/%'::text))
);

ALTER TABLE ONLY frontier.url FORCE ROW LEVEL SECURITY;

ALTER TABLE frontier.url ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME frontier.url_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW frontier.url_text WITH (security_invoker='true') AS
 SELECT u.id,
    u.organisation_id,
    u.hash,
    ((
        CASE
            WHEN u.secure THEN 'https://'::text
            ELSE 'http://'::text
        END || h.name) || u.path) AS url
   FROM (frontier.url u
     JOIN frontier.host h ON ((h.id = u.host_id)));

CREATE TABLE store.blob (
    sha256 bytea NOT NULL,
    size bigint NOT NULL,
    place text DEFAULT 'db'::text NOT NULL,
    compressed boolean NOT NULL,
    data bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT blob_check CHECK (((place = 'db'::text) = (data IS NOT NULL))),
    CONSTRAINT blob_sha256_check CHECK ((length(sha256) = 32))
);
ALTER TABLE ONLY store.blob ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE ONLY store.blob FORCE ROW LEVEL SECURITY;

CREATE TABLE store.page (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    version_id bigint,
    version_number integer DEFAULT 0 NOT NULL,
    content_hash bytea,
    extractor_version smallint,
    changed_at timestamp with time zone,
    gone_at timestamp with time zone
)
WITH (fillfactor='80');

ALTER TABLE ONLY store.page FORCE ROW LEVEL SECURITY;

CREATE TABLE store.site (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    base_url text NOT NULL,
    implicit boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT site_name_check CHECK (((name <> ''::text) AND (length(name) <= 300)))
);

ALTER TABLE ONLY store.site FORCE ROW LEVEL SECURITY;

CREATE TABLE store.version (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    page_id uuid NOT NULL,
    number integer NOT NULL,
    visit_id bigint NOT NULL,
    job_id uuid,
    fetched_at timestamp with time zone NOT NULL,
    content_hash bytea NOT NULL,
    extractor_version smallint NOT NULL,
    status smallint,
    title text,
    language text,
    page_type text,
    text text NOT NULL,
    markdown text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    links jsonb DEFAULT '[]'::jsonb NOT NULL,
    warning text,
    sha256 bytea,
    CONSTRAINT version_content_hash_check CHECK ((length(content_hash) = 32))
);

ALTER TABLE ONLY store.version FORCE ROW LEVEL SECURITY;

ALTER TABLE store.version ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME store.version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tenancy.api_key (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_key_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT api_key_name_check CHECK (((name <> ''::text) AND (length(name) <= 200))),
    CONSTRAINT api_key_scopes_check CHECK (((scopes <@ ARRAY['read'::text, 'write'::text, 'admin'::text]) AND (scopes <> '{}'::text[])))
);

ALTER TABLE ONLY tenancy.api_key FORCE ROW LEVEL SECURITY;

CREATE TABLE tenancy.member (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    email text NOT NULL,
    full_name text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT member_email_check CHECK (((email ~~ '%_@_%'::text) AND (length(email) <= 320)))
);

ALTER TABLE ONLY tenancy.member FORCE ROW LEVEL SECURITY;

CREATE TABLE tenancy.organisation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    foreign_id text,
    max_concurrency integer,
    max_pages_per_day bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT organisation_max_concurrency_check CHECK ((max_concurrency > 0)),
    CONSTRAINT organisation_max_pages_per_day_check CHECK ((max_pages_per_day > 0)),
    CONSTRAINT organisation_name_check CHECK (((name <> ''::text) AND (length(name) <= 200)))
);

ALTER TABLE ONLY tenancy.organisation FORCE ROW LEVEL SECURITY;

ALTER TABLE ONLY archive.file ATTACH PARTITION archive.file_default DEFAULT;

ALTER TABLE ONLY archive.redirect ATTACH PARTITION archive.redirect_default DEFAULT;

ALTER TABLE ONLY archive.request ATTACH PARTITION archive.request_default DEFAULT;

ALTER TABLE ONLY archive.visit ATTACH PARTITION archive.visit_default DEFAULT;

ALTER TABLE ONLY archive.file
    ADD CONSTRAINT file_pkey PRIMARY KEY (started_at, visit_id);

ALTER TABLE ONLY archive.file_default
    ADD CONSTRAINT file_default_pkey PRIMARY KEY (started_at, visit_id);

ALTER TABLE ONLY archive.mimetype
    ADD CONSTRAINT mimetype_name_key UNIQUE (name);

ALTER TABLE ONLY archive.mimetype
    ADD CONSTRAINT mimetype_pkey PRIMARY KEY (id);

ALTER TABLE ONLY archive.redirect
    ADD CONSTRAINT redirect_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.redirect_default
    ADD CONSTRAINT redirect_default_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.request_default
    ADD CONSTRAINT request_default_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.visit
    ADD CONSTRAINT visit_pkey PRIMARY KEY (started_at, id);

ALTER TABLE ONLY archive.visit_default
    ADD CONSTRAINT visit_default_pkey PRIMARY KEY (started_at, id);

ALTER TABLE ONLY frontier.candidate
    ADD CONSTRAINT candidate_pkey PRIMARY KEY (site_id, url_id);

ALTER TABLE ONLY frontier.host
    ADD CONSTRAINT host_organisation_id_name_key UNIQUE (organisation_id, name);

ALTER TABLE ONLY frontier.host
    ADD CONSTRAINT host_pkey PRIMARY KEY (id);

ALTER TABLE ONLY frontier.robots
    ADD CONSTRAINT robots_pkey PRIMARY KEY (origin);

ALTER TABLE ONLY frontier.url
    ADD CONSTRAINT url_organisation_id_hash_key UNIQUE (organisation_id, hash);

ALTER TABLE ONLY frontier.url
    ADD CONSTRAINT url_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.blob
    ADD CONSTRAINT blob_pkey PRIMARY KEY (sha256);

ALTER TABLE ONLY store.page
    ADD CONSTRAINT page_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.page
    ADD CONSTRAINT page_site_id_url_id_key UNIQUE (site_id, url_id);

ALTER TABLE ONLY store.site
    ADD CONSTRAINT site_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.version
    ADD CONSTRAINT version_page_id_number_key UNIQUE (page_id, number);

ALTER TABLE ONLY store.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.member
    ADD CONSTRAINT member_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.organisation
    ADD CONSTRAINT organisation_foreign_id_key UNIQUE (foreign_id);

ALTER TABLE ONLY tenancy.organisation
    ADD CONSTRAINT organisation_pkey PRIMARY KEY (id);

CREATE INDEX file_sha256_idx ON ONLY archive.file USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX file_default_sha256_idx ON archive.file_default USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX visit_job_idx ON ONLY archive.visit USING btree (job_id, id);

CREATE INDEX visit_default_job_id_id_idx ON archive.visit_default USING btree (job_id, id);

CREATE INDEX visit_quickinfo_idx ON ONLY archive.visit USING btree (url_id, started_at, exit_code);

CREATE INDEX visit_default_url_id_started_at_exit_code_idx ON archive.visit_default USING btree (url_id, started_at, exit_code);

CREATE INDEX candidate_due_idx ON frontier.candidate USING btree (site_id, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX url_host_idx ON frontier.url USING btree (host_id);

CREATE INDEX blob_used_idx ON store.blob USING btree (used_at);

CREATE INDEX page_organisation_idx ON store.page USING btree (organisation_id, last_seen_at);

CREATE UNIQUE INDEX site_implicit_key ON store.site USING btree (organisation_id, base_url) WHERE implicit;

CREATE UNIQUE INDEX site_name_key ON store.site USING btree (organisation_id, lower(name));

CREATE INDEX version_content_hash_idx ON store.version USING btree (content_hash);

CREATE INDEX version_job_idx ON store.version USING btree (job_id, id);

CREATE INDEX version_sha256_idx ON store.version USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX api_key_organisation_id_idx ON tenancy.api_key USING btree (organisation_id, created_at);

CREATE UNIQUE INDEX member_email_key ON tenancy.member USING btree (lower(email));

CREATE INDEX member_organisation_id_idx ON tenancy.member USING btree (organisation_id);

CREATE UNIQUE INDEX organisation_name_key ON tenancy.organisation USING btree (lower(name));

ALTER INDEX archive.file_pkey ATTACH PARTITION archive.file_default_pkey;

ALTER INDEX archive.file_sha256_idx ATTACH PARTITION archive.file_default_sha256_idx;

ALTER INDEX archive.redirect_pkey ATTACH PARTITION archive.redirect_default_pkey;

ALTER INDEX archive.request_pkey ATTACH PARTITION archive.request_default_pkey;

ALTER INDEX archive.visit_job_idx ATTACH PARTITION archive.visit_default_job_id_id_idx;

ALTER INDEX archive.visit_pkey ATTACH PARTITION archive.visit_default_pkey;

ALTER INDEX archive.visit_quickinfo_idx ATTACH PARTITION archive.visit_default_url_id_started_at_exit_code_idx;

ALTER TABLE ONLY frontier.host
    ADD CONSTRAINT host_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.page
    ADD CONSTRAINT page_site_id_fkey FOREIGN KEY (site_id) REFERENCES store.site(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.site
    ADD CONSTRAINT site_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.version
    ADD CONSTRAINT version_page_id_fkey FOREIGN KEY (page_id) REFERENCES store.page(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES tenancy.member(id) ON DELETE SET NULL;

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.member
    ADD CONSTRAINT member_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE archive.file ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.file_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.redirect ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.redirect_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.request ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.request_default ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON archive.file TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.file_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.redirect TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.redirect_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.request TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.request_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.visit TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.visit_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE archive.visit ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.visit_default ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON archive.file TO trapline_worker USING (true);

CREATE POLICY worker ON archive.file_default TO trapline_worker USING (true);

CREATE POLICY worker ON archive.redirect TO trapline_worker USING (true);

CREATE POLICY worker ON archive.redirect_default TO trapline_worker USING (true);

CREATE POLICY worker ON archive.request TO trapline_worker USING (true);

CREATE POLICY worker ON archive.request_default TO trapline_worker USING (true);

CREATE POLICY worker ON archive.visit TO trapline_worker USING (true);

CREATE POLICY worker ON archive.visit_default TO trapline_worker USING (true);

ALTER TABLE frontier.candidate ENABLE ROW LEVEL SECURITY;

ALTER TABLE frontier.host ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON frontier.candidate TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON frontier.host TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON frontier.url TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE frontier.url ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON frontier.candidate TO trapline_worker USING (true);

CREATE POLICY worker ON frontier.host TO trapline_worker USING (true);

CREATE POLICY worker ON frontier.url TO trapline_worker USING (true);

ALTER TABLE store.blob ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.page ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.site ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON store.blob TO trapline_tenant USING (((EXISTS ( SELECT
   FROM store.version v
  WHERE (v.sha256 = blob.sha256))) OR (EXISTS ( SELECT
   FROM archive.file f
  WHERE (f.sha256 = blob.sha256)))));

CREATE POLICY tenant ON store.page TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.site TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.version TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE store.version ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON store.blob TO trapline_worker USING (true);

CREATE POLICY worker ON store.page TO trapline_worker USING (true);

CREATE POLICY worker ON store.site TO trapline_worker USING (true);

CREATE POLICY worker ON store.version TO trapline_worker USING (true);

ALTER TABLE tenancy.api_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.member ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.organisation ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON tenancy.api_key TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.member TO trapline_tenant USING (((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)) AND ((( SELECT auth.uid() AS uid) IS NULL) OR (id = ( SELECT auth.uid() AS uid)))));

CREATE POLICY tenant ON tenancy.organisation TO trapline_tenant USING ((id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY worker ON tenancy.api_key TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.member TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.organisation TO trapline_worker USING (true);

GRANT USAGE ON SCHEMA archive TO trapline_worker;
GRANT USAGE ON SCHEMA archive TO trapline_tenant;

GRANT USAGE ON SCHEMA auth TO trapline_worker;
GRANT USAGE ON SCHEMA auth TO trapline_tenant;

GRANT USAGE ON SCHEMA frontier TO trapline_worker;
GRANT USAGE ON SCHEMA frontier TO trapline_tenant;

GRANT USAGE ON SCHEMA store TO trapline_worker;
GRANT USAGE ON SCHEMA store TO trapline_tenant;

GRANT USAGE ON SCHEMA tenancy TO trapline_worker;
GRANT USAGE ON SCHEMA tenancy TO trapline_tenant;

REVOKE ALL ON FUNCTION tenancy.isolate(target regclass, predicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenancy.share(target regclass) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.mimetype TO trapline_worker;
GRANT SELECT ON TABLE archive.mimetype TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.candidate TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.candidate TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.host TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.host TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.robots TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.url TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.url TO trapline_worker;

GRANT SELECT ON TABLE frontier.url_text TO trapline_worker;
GRANT SELECT ON TABLE frontier.url_text TO trapline_tenant;

GRANT SELECT ON TABLE store.blob TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.blob TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.page TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.page TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.site TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.site TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.version TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.version TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.api_key TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.api_key TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.member TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.member TO trapline_worker;

GRANT SELECT ON TABLE tenancy.organisation TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.organisation TO trapline_worker;

GRANT UPDATE(name) ON TABLE tenancy.organisation TO trapline_tenant;

GRANT UPDATE(updated_at) ON TABLE tenancy.organisation TO trapline_tenant;
