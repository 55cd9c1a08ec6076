-- Record pages as visits saw them: a version for each whose text changed, its change event, and a
-- sighting that maintenance counts later. Each page occurs once, and pages come in the order of site and
-- URL, so that two batches cannot deadlock.
--
-- Responses to two variants of a request are not compared: a version of another variant than the last
-- one is new, not changed. The variant of older versions is unknown; they are compared, but never taken
-- for the same.
--
-- Each kind of row is one statement for the whole batch: starting a statement costs more than its row,
-- mostly for constraints. `unnest` is in the select list, side by side with the find of the same page:
-- in FROM it would copy all texts first.
CREATE OR REPLACE FUNCTION store.record_pages(p_sightings store.new_sighting[]) RETURNS SETOF store.seen
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    finds store.find[];
    inserted bigint;
BEGIN
    -- The present pages, locked, and the effect of each sighting on its page.
    finds := ARRAY(
        SELECT ROW(
            coalesce(p.id, (x.s).page_id), p.id IS NULL, p.version_id,
            CASE WHEN c.change = 1 THEN p.version_id ELSE nextval('store.version_id_seq') END,
            coalesce(p.version_number, 0) + CASE WHEN c.change = 1 THEN 0 ELSE 1 END,
            c.change, p.gone_at IS NOT NULL, (x.s).content_hash <> p.content_hash
        )::store.find
        FROM (SELECT unnest(p_sightings) AS s OFFSET 0) x
        LEFT JOIN LATERAL (
            SELECT p.* FROM store.page p
            WHERE p.site_id = (x.s).site_id AND p.url_id = (x.s).url_id
            FOR NO KEY UPDATE OFFSET 0) p ON true
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN (x.s).content_hash IS NULL THEN 1
                WHEN p.version_id IS NULL THEN 0
                WHEN (x.s).variant <> p.variant
                    AND (p.variant <> '\x00' OR (x.s).content_hash = p.content_hash) THEN 0
                WHEN (x.s).content_hash = p.content_hash THEN 1
                WHEN (x.s).alike AND (x.s).compared_with = p.version_id THEN 1
                ELSE 2 END AS change
            OFFSET 0) c);

    -- One write for each page.
    INSERT INTO store.page (
        id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, version_id,
        version_number, content_hash, extractor_version, changed_at, variant)
    SELECT (x.f).page_id, (x.s).organisation_id, (x.s).site_id, (x.s).url_id, (x.s).seen_at,
           (x.s).seen_at, (x.f).version_id, (x.f).number, (x.s).content_hash,
           CASE WHEN (x.f).change = 0 THEN (x.s).extractor_version END,
           CASE WHEN (x.f).change = 0 THEN (x.s).seen_at END, (x.s).variant
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).is_new
    ON CONFLICT (site_id, url_id) DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted < (SELECT count(*) FROM unnest(finds) f WHERE f.is_new) THEN
        RAISE EXCEPTION 'another visit inserted the page meanwhile'
        USING ERRCODE = 'serialization_failure';
    END IF;
    IF inserted < cardinality(finds) THEN
        UPDATE store.page p
        SET last_seen_at = greatest(p.last_seen_at, (x.s).seen_at),
            returned_at = CASE WHEN p.gone_at IS NULL THEN p.returned_at ELSE (x.s).seen_at END,
            gone_at = NULL, version_id = (x.f).version_id, version_number = (x.f).number,
            content_hash =
                CASE WHEN (x.f).change = 1 THEN p.content_hash ELSE (x.s).content_hash END,
            extractor_version = CASE
                WHEN (x.f).change = 1 THEN p.extractor_version ELSE (x.s).extractor_version END,
            changed_at = CASE WHEN (x.f).change = 1 THEN p.changed_at ELSE (x.s).seen_at END,
            variant = CASE WHEN (x.f).change = 1 THEN p.variant ELSE (x.s).variant END
        FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
        WHERE p.id = (x.f).page_id AND NOT (x.f).is_new;
    END IF;

    INSERT INTO store.version (
        id, organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown,
        metadata, links, warning, sha256, variant)
    OVERRIDING SYSTEM VALUE
    SELECT (x.f).version_id, (x.s).organisation_id, (x.f).page_id, (x.f).number, (x.s).visit_id,
           (x.s).job_id, (x.s).seen_at, (x.s).content_hash, (x.s).extractor_version, (x.s).status,
           (x.s).content_type, (x.s).title, (x.s).language, (x.s).page_type, (x.s).text,
           (x.s).markdown, (x.s).metadata::jsonb, (x.s).links::jsonb, (x.s).warning, (x.s).sha256,
           (x.s).variant
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).change <> 1;

    -- Change events: new, changed and returned pages; not the first version of another variant, and not
    -- a page that differs only in what its site ignores.
    INSERT INTO store.change (
        organisation_id, site_id, page_id, url_id, status, source, detected_at, version_id,
        previous_version_id, job_id, added_lines, removed_lines, added_words, removed_words)
    SELECT
        (x.s).organisation_id, (x.s).site_id, (x.f).page_id, (x.s).url_id,
        -- A page that was reported as removed is reported as new when it returns.
        CASE WHEN (x.f).returned OR (x.f).change = 0 THEN 'new'
            WHEN (x.f).change = 1 THEN 'same' ELSE 'changed' END,
        'visit', (x.s).seen_at, (x.f).version_id, (x.f).before_id, (x.s).job_id,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).added_lines END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).removed_lines END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).added_words END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).removed_words END
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).returned OR (x.f).change = 2 OR (x.f).change = 0 AND (x.f).before_id IS NULL;

    INSERT INTO store.sighting (organisation_id, site_id, page_id, version_id, seen_at)
    SELECT (x.s).organisation_id, (x.s).site_id, (x.f).page_id, (x.f).version_id, (x.s).seen_at
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    CROSS JOIN LATERAL generate_series(1, (x.s).times)
    WHERE (x.f).version_id IS NOT NULL;

    RETURN QUERY SELECT f.page_id, f.version_id, f.number, f.change FROM unnest(finds) f;
END
$$;
