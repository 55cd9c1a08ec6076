-- Write pages as visits found them: a version for each whose text is not what it was, what changed,
-- and what maintenance counts later. Each page is there once, and all come in the order of site and
-- URL, so that two batches wait for each other in one direction only.
--
-- Every kind of row is one statement for the whole batch: to begin one costs more than its row does,
-- most of it for the constraints, which each statement reads anew. `unnest` stands in the list of
-- columns, side by side with what was found for the same page: in FROM it would copy all texts first.
CREATE OR REPLACE FUNCTION store.record(p_sightings store.new_sighting[]) RETURNS SETOF store.seen
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    finds store.find[];
    made bigint;
BEGIN
    -- The pages as they are, locked, and what each sighting means for its own.
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
                WHEN (x.s).content_hash = p.content_hash THEN 1
                WHEN (x.s).alike AND (x.s).compared_with = p.version_id THEN 1
                ELSE 2 END AS change
            OFFSET 0) c);

    -- One write of each page, whatever became of it.
    INSERT INTO store.page (
        id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, version_id,
        version_number, content_hash, extractor_version, changed_at)
    SELECT (x.f).page_id, (x.s).organisation_id, (x.s).site_id, (x.s).url_id, (x.s).seen_at,
           (x.s).seen_at, (x.f).version_id, (x.f).number, (x.s).content_hash,
           CASE WHEN (x.f).change = 0 THEN (x.s).extractor_version END,
           CASE WHEN (x.f).change = 0 THEN (x.s).seen_at END
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).is_new
    ON CONFLICT (site_id, url_id) DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made < (SELECT count(*) FROM unnest(finds) f WHERE f.is_new) THEN
        RAISE EXCEPTION 'another visit made the page meanwhile'
        USING ERRCODE = 'serialization_failure';
    END IF;
    IF made < cardinality(finds) THEN
        UPDATE store.page p
        SET last_seen_at = greatest(p.last_seen_at, (x.s).seen_at),
            returned_at = CASE WHEN p.gone_at IS NULL THEN p.returned_at ELSE (x.s).seen_at END,
            gone_at = NULL, version_id = (x.f).version_id, version_number = (x.f).number,
            content_hash =
                CASE WHEN (x.f).change = 1 THEN p.content_hash ELSE (x.s).content_hash END,
            extractor_version = CASE
                WHEN (x.f).change = 1 THEN p.extractor_version ELSE (x.s).extractor_version END,
            changed_at = CASE WHEN (x.f).change = 1 THEN p.changed_at ELSE (x.s).seen_at END
        FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
        WHERE p.id = (x.f).page_id AND NOT (x.f).is_new;
    END IF;

    INSERT INTO store.version (
        id, organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown,
        metadata, links, warning, sha256)
    OVERRIDING SYSTEM VALUE
    SELECT (x.f).version_id, (x.s).organisation_id, (x.f).page_id, (x.f).number, (x.s).visit_id,
           (x.s).job_id, (x.s).seen_at, (x.s).content_hash, (x.s).extractor_version, (x.s).status,
           (x.s).content_type, (x.s).title, (x.s).language, (x.s).page_type, (x.s).text,
           (x.s).markdown, (x.s).metadata::jsonb, (x.s).links::jsonb, (x.s).warning, (x.s).sha256
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).change <> 1;

    -- Told are new and changed pages, those that came back, and changes that do not count.
    INSERT INTO store.change (
        organisation_id, site_id, page_id, url_id, status, source, detected_at, version_id,
        previous_version_id, job_id, added_lines, removed_lines, added_words, removed_words)
    SELECT
        (x.s).organisation_id, (x.s).site_id, (x.f).page_id, (x.s).url_id,
        -- Who was told that a page is gone is told that it is there again.
        CASE WHEN (x.f).returned OR (x.f).change = 0 THEN 'new'
            WHEN (x.f).change = 1 THEN 'same' ELSE 'changed' END,
        'visit', (x.s).seen_at, (x.f).version_id, (x.f).before_id, (x.s).job_id,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).added_lines END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).removed_lines END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).added_words END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).removed_words END
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).change <> 1 OR (x.f).returned OR (x.f).differs;

    INSERT INTO store.sighting (organisation_id, site_id, page_id, version_id, seen_at)
    SELECT (x.s).organisation_id, (x.s).site_id, (x.f).page_id, (x.f).version_id, (x.s).seen_at
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    CROSS JOIN LATERAL generate_series(1, (x.s).times)
    WHERE (x.f).version_id IS NOT NULL;

    RETURN QUERY SELECT f.page_id, f.version_id, f.number, f.change FROM unnest(finds) f;
END
$$;
