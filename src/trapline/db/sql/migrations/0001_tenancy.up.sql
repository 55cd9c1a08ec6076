-- Who owns data. Every table with an organisation_id is isolated by row-level security:
-- the tenant role sees the rows of one organisation, the worker role sees all.
-- The two roles belong to the cluster, not to this database: see db/tenancy.py.

CREATE SCHEMA tenancy;
CREATE SCHEMA auth;

GRANT USAGE ON SCHEMA tenancy, auth TO trapline_worker, trapline_tenant;

CREATE FUNCTION tenancy.current_organisation() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('trapline.organisation_id', true), '')::uuid;

COMMENT ON FUNCTION tenancy.current_organisation() IS
'The organisation of this transaction; null outside of one, so that no row matches.';

-- The name is that of Supabase, whose policies others may bring along.
CREATE FUNCTION auth.uid() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('trapline.member_id', true), '')::uuid;

COMMENT ON FUNCTION auth.uid() IS
'The member who acts in this transaction; null when an API key acts for its organisation.';

CREATE TABLE tenancy.organisation (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    -- An owner id of another system that is no UUID; our id is then its UUIDv5.
    foreign_id text UNIQUE,
    max_concurrency integer CHECK (max_concurrency > 0),
    max_pages_per_day bigint CHECK (max_pages_per_day > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX organisation_name_key ON tenancy.organisation (lower(name));

CREATE TABLE tenancy.member (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    email text NOT NULL CHECK (email LIKE '%_@_%' AND length(email) <= 320),
    full_name text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX member_email_key ON tenancy.member (lower(email));
CREATE INDEX member_organisation_id_idx ON tenancy.member (organisation_id);

CREATE TABLE tenancy.api_key (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    -- What a list shows of the key; the key itself is kept only as a hash.
    prefix text NOT NULL,
    hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    scopes text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'write', 'admin'] AND scopes <> '{}'),
    created_by uuid REFERENCES tenancy.member (id) ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at timestamptz
);

CREATE INDEX api_key_organisation_id_idx ON tenancy.api_key (organisation_id, created_at);

CREATE FUNCTION tenancy.isolate(target regclass, predicate text DEFAULT 'organisation_id = (SELECT tenancy.current_organisation())')
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO trapline_tenant USING (%s)', target, predicate);
    -- The owner inherits this one from its membership, or migrations and backups would see nothing.
    EXECUTE format('CREATE POLICY worker ON %s TO trapline_worker USING (true)', target);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO trapline_tenant, trapline_worker', target);
END
$$;

COMMENT ON FUNCTION tenancy.isolate(regclass, text) IS
'Give a table that belongs to organisations its row-level security and its grants.';

CREATE FUNCTION tenancy.share(target regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO trapline_worker', target);
    EXECUTE format('GRANT SELECT ON %s TO trapline_tenant', target);
END
$$;

COMMENT ON FUNCTION tenancy.share(regclass) IS
'Grant a table that belongs to no organisation: workers write it, tenants read it.';

-- Only migrations isolate and share.
REVOKE EXECUTE ON FUNCTION tenancy.isolate(regclass, text), tenancy.share(regclass) FROM PUBLIC;

SELECT tenancy.isolate('tenancy.organisation', 'id = (SELECT tenancy.current_organisation())');
-- A member sees only their own row; a key, which acts for the whole organisation, sees all members.
SELECT tenancy.isolate(
    'tenancy.member',
    'organisation_id = (SELECT tenancy.current_organisation())'
    ' AND ((SELECT auth.uid()) IS NULL OR id = (SELECT auth.uid()))'
);
SELECT tenancy.isolate('tenancy.api_key');

-- A tenant changes its organisation's name and reads its limits; only workers set limits.
REVOKE INSERT, UPDATE, DELETE ON tenancy.organisation FROM trapline_tenant;
GRANT UPDATE (name, updated_at) ON tenancy.organisation TO trapline_tenant;
