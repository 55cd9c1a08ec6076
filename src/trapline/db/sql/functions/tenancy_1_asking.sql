-- Why someone who was known a moment ago may not write now: 'asker', or null when they may. p_key is
-- the key that they came with; null for nobody in particular, who may as long as there is no key.
CREATE OR REPLACE FUNCTION tenancy.refused(p_key uuid, p_organisation uuid) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_key IS NULL THEN
            CASE WHEN EXISTS (SELECT FROM tenancy.api_key a WHERE a.revoked_at IS NULL)
                THEN 'asker' END
        WHEN NOT EXISTS (
            SELECT FROM tenancy.api_key a
            WHERE a.id = p_key AND a.organisation_id = p_organisation AND a.revoked_at IS NULL
                AND 'write' = ANY (a.scopes))
        THEN 'asker' END
$$;
