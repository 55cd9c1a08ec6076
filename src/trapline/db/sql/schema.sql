-- The whole schema, made by `make sql` from migrations/ and functions/: edit those instead.
SET check_function_bodies = false;

CREATE SCHEMA auth;

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

CREATE INDEX api_key_organisation_id_idx ON tenancy.api_key USING btree (organisation_id, created_at);

CREATE UNIQUE INDEX member_email_key ON tenancy.member USING btree (lower(email));

CREATE INDEX member_organisation_id_idx ON tenancy.member USING btree (organisation_id);

CREATE UNIQUE INDEX organisation_name_key ON tenancy.organisation USING btree (lower(name));

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES tenancy.member(id) ON DELETE SET NULL;

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.member
    ADD CONSTRAINT member_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE tenancy.api_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.member ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.organisation ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON tenancy.api_key TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.member TO trapline_tenant USING (((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)) AND ((( SELECT auth.uid() AS uid) IS NULL) OR (id = ( SELECT auth.uid() AS uid)))));

CREATE POLICY tenant ON tenancy.organisation TO trapline_tenant USING ((id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY worker ON tenancy.api_key TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.member TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.organisation TO trapline_worker USING (true);

GRANT USAGE ON SCHEMA auth TO trapline_worker;
GRANT USAGE ON SCHEMA auth TO trapline_tenant;

GRANT USAGE ON SCHEMA tenancy TO trapline_worker;
GRANT USAGE ON SCHEMA tenancy TO trapline_tenant;

REVOKE ALL ON FUNCTION tenancy.isolate(target regclass, predicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenancy.share(target regclass) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.api_key TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.api_key TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.member TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.member TO trapline_worker;

GRANT SELECT ON TABLE tenancy.organisation TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.organisation TO trapline_worker;

GRANT UPDATE(name) ON TABLE tenancy.organisation TO trapline_tenant;

GRANT UPDATE(updated_at) ON TABLE tenancy.organisation TO trapline_tenant;
