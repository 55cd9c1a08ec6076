-- Return the ids of URLs, in the order of the arguments, inserting those that are missing. Hosts and
-- URLs are inserted in key order, so that two workers cannot deadlock.
CREATE OR REPLACE FUNCTION frontier.intern_urls(
    p_organisations uuid[], p_hosts text[], p_secures boolean[], p_paths text[], p_hashes bytea[]
) RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    ids bigint[] := frontier.find_urls(p_organisations, p_hashes);
BEGIN
    IF array_position(ids, NULL) IS NULL THEN RETURN ids; END IF;
    INSERT INTO frontier.host (organisation_id, name)
    SELECT DISTINCT new.organisation_id, new.name
    FROM unnest(p_organisations, p_hosts, ids) AS new (organisation_id, name, id)
    WHERE new.id IS NULL AND NOT EXISTS (
        SELECT FROM frontier.host h
        WHERE h.organisation_id = new.organisation_id AND h.name = new.name)
    ORDER BY new.organisation_id, new.name
    ON CONFLICT DO NOTHING;
    INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
    SELECT new.organisation_id, h.id, new.secure, new.path, new.hash
    FROM unnest(p_organisations, p_hosts, p_secures, p_paths, p_hashes, ids)
        AS new (organisation_id, name, secure, path, hash, id)
    CROSS JOIN LATERAL (
        SELECT h.id FROM frontier.host h
        WHERE h.organisation_id = new.organisation_id AND h.name = new.name OFFSET 0) h
    WHERE new.id IS NULL
    ORDER BY new.organisation_id, new.hash
    ON CONFLICT DO NOTHING;
    RETURN frontier.find_urls(p_organisations, p_hashes);
END
$$;

-- The ids of URLs in the order of the arguments; null for a URL without a row.
CREATE OR REPLACE FUNCTION frontier.find_urls(p_organisations uuid[], p_hashes bytea[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN ARRAY(
        SELECT u.id
        FROM unnest(p_organisations, p_hashes) WITH ORDINALITY
            AS wanted (organisation_id, hash, position)
        LEFT JOIN LATERAL (
            SELECT u.id FROM frontier.url u
            WHERE u.organisation_id = wanted.organisation_id AND u.hash = wanted.hash OFFSET 0
        ) u ON true
        ORDER BY wanted.position);
END
$$;
