-- Look up the crawl state of URLs in sites, and the version that a 304 would confirm, if it still exists:
-- one row for each argument, in order. A null site means the implicit one of the origin and variant, which
-- may not exist yet. Every page of a crawl is looked up here before its fetch, so the plan is generic
-- (planning takes longer than running) and each lookup is one index probe, as in queue_3_claim.sql.
-- It reads tables of frontier too, as its caller in the pipeline does elsewhere: the pipeline has no schema.
CREATE OR REPLACE FUNCTION store.look_up_pages(
    p_organisations uuid[], p_sites uuid[], p_origins text[], p_variants bytea[], p_hashes bytea[]
) RETURNS TABLE (
    "position" bigint, site_id uuid, last_visit_at timestamptz, last_contentful_at timestamptz,
    last_etag text, last_modified timestamptz, looks double precision, changes double precision,
    seconds double precision, failures integer, due_at timestamptz, version_id bigint,
    content_hash bytea, variant bytea
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT
        wanted.position, s.id, c.last_visit_at, c.last_contentful_at, c.last_etag, c.last_modified,
        coalesce(c.looks, 0), coalesce(c.changes, 0), coalesce(c.seconds, 0),
        coalesce(c.failures, 0), c.due_at, p.version_id, p.content_hash, p.variant
    FROM unnest(p_organisations, p_sites, p_origins, p_variants, p_hashes) WITH ORDINALITY
        AS wanted (organisation_id, site_id, origin, variant, hash, position)
    LEFT JOIN LATERAL (
        SELECT wanted.site_id AS id WHERE wanted.site_id IS NOT NULL
        UNION ALL
        SELECT i.id FROM store.site i
        WHERE wanted.site_id IS NULL AND i.organisation_id = wanted.organisation_id
            AND i.base_url = wanted.origin AND i.variant = wanted.variant
            AND i.implicit AND i.deleted_at IS NULL
    ) s ON true
    LEFT JOIN LATERAL (
        SELECT u.id FROM frontier.url u
        WHERE u.organisation_id = wanted.organisation_id AND u.hash = wanted.hash OFFSET 0
    ) u ON true
    LEFT JOIN LATERAL (
        SELECT c.* FROM frontier.candidate c WHERE c.site_id = s.id AND c.url_id = u.id OFFSET 0
    ) c ON true
    LEFT JOIN LATERAL (
        SELECT p.version_id, p.content_hash, p.variant FROM store.page p
        WHERE p.site_id = c.site_id AND p.url_id = c.url_id OFFSET 0
    ) p ON true;
END
$$;
