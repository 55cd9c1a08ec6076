-- Why a caller who was authenticated a moment ago may not write now: 'caller', or null if they may.
-- p_key is the caller's key; null for an anonymous one, who may write as long as no key exists.
CREATE OR REPLACE FUNCTION tenancy.write_denial(p_key uuid, p_organisation uuid) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_key IS NULL THEN
            CASE WHEN EXISTS (SELECT FROM tenancy.api_key)
                THEN 'caller' END
        WHEN NOT EXISTS (
            SELECT FROM tenancy.api_key a
            WHERE a.id = p_key AND a.organisation_id = p_organisation AND a.revoked_at IS NULL
                AND 'write' = ANY (a.scopes))
        THEN 'caller' END
$$;
