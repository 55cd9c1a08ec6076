-- The searchable entries of an organisation that match a filter; a null argument matches all.
-- A plain SQL function, so that the planner inlines it into the calling query.
CREATE OR REPLACE FUNCTION knowledge.matching_entries(
    p_organisation_id uuid,
    p_sources uuid[],
    p_sites uuid[],
    p_applications uuid[],
    p_kinds text[],
    p_languages text[],
    p_types text[],
    p_hosts text[],
    p_not_hosts text[],
    p_path text,
    p_since timestamptz,
    p_until timestamptz
) RETURNS TABLE (entry_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT e.id
    FROM knowledge.entry AS e
    INNER JOIN knowledge.source AS s ON e.source_id = s.id AND e.generation = s.generation
    WHERE
        s.organisation_id = p_organisation_id
        AND (p_sources IS NULL OR s.id = ANY(p_sources))
        AND (p_sites IS NULL OR s.site_id = ANY(p_sites))
        AND (p_applications IS NULL OR s.application_id = ANY(p_applications))
        AND (p_kinds IS NULL OR s.kind = ANY(p_kinds))
        AND (p_languages IS NULL OR e.language = ANY(p_languages))
        AND (p_types IS NULL OR e.content_type = ANY(p_types))
        AND (p_hosts IS NULL OR knowledge.host_of(e.uri) = ANY(p_hosts))
        AND (p_not_hosts IS NULL OR NOT knowledge.host_of(e.uri) = ANY(p_not_hosts))
        AND (p_path IS NULL OR e.path ^@ p_path)
        AND (p_since IS NULL OR e.dated_at >= p_since)
        AND (p_until IS NULL OR e.dated_at < p_until)
$$;

-- The planner's estimate of how many entries match a filter: a millisecond, where counting takes many.
-- It gets the ids of the matching sources, because its estimate of the join would be poor.
CREATE OR REPLACE FUNCTION knowledge.estimate_matching_entries(
    p_organisation_id uuid,
    p_sources uuid[],
    p_sites uuid[],
    p_applications uuid[],
    p_kinds text[],
    p_languages text[],
    p_types text[],
    p_hosts text[],
    p_not_hosts text[],
    p_path text,
    p_since timestamptz,
    p_until timestamptz
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid[];
    plan json;
BEGIN
    IF coalesce(p_sources, p_sites, p_applications) IS NOT NULL OR p_kinds IS NOT NULL THEN
        SELECT coalesce(array_agg(s.id), '{}') INTO chosen
        FROM knowledge.source AS s
        WHERE
            s.organisation_id = p_organisation_id
            AND (p_sources IS NULL OR s.id = ANY(p_sources))
            AND (p_sites IS NULL OR s.site_id = ANY(p_sites))
            AND (p_applications IS NULL OR s.application_id = ANY(p_applications))
            AND (p_kinds IS NULL OR s.kind = ANY(p_kinds));
    END IF;
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT FROM knowledge.entry AS e WHERE e.organisation_id = $1'
        ' AND ($2 IS NULL OR e.source_id = ANY($2))'
        ' AND ($3 IS NULL OR e.language = ANY($3))'
        ' AND ($4 IS NULL OR e.content_type = ANY($4))'
        ' AND ($5 IS NULL OR knowledge.host_of(e.uri) = ANY($5))'
        ' AND ($6 IS NULL OR NOT knowledge.host_of(e.uri) = ANY($6))'
        ' AND ($7 IS NULL OR e.path ^@ $7)'
        ' AND ($8 IS NULL OR e.dated_at >= $8)'
        ' AND ($9 IS NULL OR e.dated_at < $9)'
    INTO plan
    USING p_organisation_id, chosen, p_languages, p_types, p_hosts, p_not_hosts, p_path, p_since, p_until;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::bigint;
END
$$;
