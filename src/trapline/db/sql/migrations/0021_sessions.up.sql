-- Sign-in sessions of the dashboard, the audit trail of an organisation, and its share links.

CREATE TABLE tenancy.session (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    -- The key that signed in: a session ends when its key is revoked. Null: the administrator.
    api_key_id uuid REFERENCES tenancy.api_key (id) ON DELETE CASCADE,
    -- SHA-256 of the administrator's key: the session ends when that key is changed.
    admin_hash bytea CHECK (length(admin_hash) = 32),
    -- SHA-256 of the token in the cookie.
    hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    -- The token before the last rotation, which requests under way still carry.
    previous_hash bytea UNIQUE CHECK (length(previous_hash) = 32),
    rotated_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    client text,
    user_agent text,
    CHECK ((api_key_id IS NULL) <> (admin_hash IS NULL))
);

CREATE INDEX session_organisation_idx ON tenancy.session (organisation_id, created_at);
CREATE INDEX session_api_key_idx ON tenancy.session (api_key_id) WHERE api_key_id IS NOT NULL;
CREATE INDEX session_expires_idx ON tenancy.session (expires_at);

-- Who changed what, and when: through the API or the dashboard.
CREATE TABLE tenancy.audit_entry (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The name of the key, or administrator.
    actor text NOT NULL,
    api_key_id uuid,
    channel text NOT NULL CHECK (channel IN ('api', 'dashboard')),
    action text NOT NULL CHECK (action <> ''),
    target text,
    detail jsonb NOT NULL DEFAULT '{}',
    client text
);

CREATE INDEX audit_entry_organisation_idx ON tenancy.audit_entry (organisation_id, id);
CREATE INDEX audit_entry_created_idx ON tenancy.audit_entry USING brin (created_at);

-- A report that anyone who has the link may read.
CREATE TABLE tenancy.share_link (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    -- The view, below the dashboard's root.
    path text NOT NULL CHECK (path LIKE '/%'),
    title text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
);

CREATE INDEX share_link_organisation_idx ON tenancy.share_link (organisation_id, created_at);
CREATE INDEX share_link_expires_idx ON tenancy.share_link (expires_at);

SELECT tenancy.isolate('tenancy.session');
SELECT tenancy.isolate('tenancy.audit_entry');
SELECT tenancy.isolate('tenancy.share_link');
-- Nobody rewrites the audit trail; maintenance deletes what is past its time.
REVOKE UPDATE, DELETE ON tenancy.audit_entry FROM trapline_tenant;
