-- Write pages as visits found them: a version for each whose text is not what it was, what changed,
-- and what maintenance counts later. Each page is there once, and all come in the order of site and
-- URL, so that two batches wait for each other in one direction only.
CREATE OR REPLACE FUNCTION store.record(p_sightings store.new_sighting[]) RETURNS SETOF store.seen
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    s store.new_sighting;
    page store.page;
    seen store.seen;
    returned boolean;
BEGIN
    FOREACH s IN ARRAY p_sightings LOOP
        SELECT p.* INTO page FROM store.page p
        WHERE p.site_id = s.site_id AND p.url_id = s.url_id FOR NO KEY UPDATE;
        seen.page_id := coalesce(page.id, s.page_id);
        seen.version_id := page.version_id;
        seen.number := coalesce(page.version_number, 0);
        seen.change := CASE
            WHEN s.content_hash IS NULL THEN 1
            WHEN page.version_id IS NULL THEN 0
            WHEN s.content_hash = page.content_hash THEN 1
            WHEN s.alike AND s.compared_with = page.version_id THEN 1
            ELSE 2 END;
        IF seen.change <> 1 THEN
            seen.version_id := nextval('store.version_id_seq');
            seen.number := seen.number + 1;
        END IF;

        -- One write of the page, whatever became of it.
        IF page.id IS NULL THEN
            INSERT INTO store.page (
                id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, version_id,
                version_number, content_hash, extractor_version, changed_at)
            VALUES (
                seen.page_id, s.organisation_id, s.site_id, s.url_id, s.seen_at, s.seen_at,
                seen.version_id, seen.number, s.content_hash,
                CASE WHEN seen.change = 0 THEN s.extractor_version END,
                CASE WHEN seen.change = 0 THEN s.seen_at END)
            ON CONFLICT (site_id, url_id) DO NOTHING;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'another visit made the page meanwhile'
                USING ERRCODE = 'serialization_failure';
            END IF;
        ELSE
            UPDATE store.page p
            SET last_seen_at = greatest(p.last_seen_at, s.seen_at),
                returned_at = CASE WHEN p.gone_at IS NULL THEN p.returned_at ELSE s.seen_at END,
                gone_at = NULL, version_id = seen.version_id, version_number = seen.number,
                content_hash =
                    CASE WHEN seen.change = 1 THEN p.content_hash ELSE s.content_hash END,
                extractor_version =
                    CASE WHEN seen.change = 1 THEN p.extractor_version ELSE s.extractor_version END,
                changed_at = CASE WHEN seen.change = 1 THEN p.changed_at ELSE s.seen_at END
            WHERE p.id = page.id;
        END IF;

        IF seen.change <> 1 THEN
            INSERT INTO store.version (
                id, organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
                extractor_version, status, content_type, title, language, page_type, text, markdown,
                metadata, links, warning, sha256)
            OVERRIDING SYSTEM VALUE
            VALUES (
                seen.version_id, s.organisation_id, seen.page_id, seen.number, s.visit_id, s.job_id,
                s.seen_at, s.content_hash, s.extractor_version, s.status, s.content_type, s.title,
                s.language, s.page_type, s.text, s.markdown, s.metadata::jsonb, s.links::jsonb,
                s.warning, s.sha256);
        END IF;

        -- Told are new and changed pages, those that came back, and changes that do not count.
        returned := page.gone_at IS NOT NULL;
        IF seen.change <> 1 OR returned OR s.content_hash <> page.content_hash THEN
            INSERT INTO store.change (
                organisation_id, site_id, page_id, url_id, status, source, detected_at, version_id,
                previous_version_id, job_id, added_lines, removed_lines, added_words, removed_words)
            SELECT
                s.organisation_id, s.site_id, seen.page_id, s.url_id,
                -- Who was told that a page is gone is told that it is there again.
                CASE WHEN returned OR seen.change = 0 THEN 'new'
                    WHEN seen.change = 1 THEN 'same' ELSE 'changed' END,
                'visit', s.seen_at, seen.version_id, page.version_id, s.job_id,
                CASE WHEN c.compared THEN s.added_lines END,
                CASE WHEN c.compared THEN s.removed_lines END,
                CASE WHEN c.compared THEN s.added_words END,
                CASE WHEN c.compared THEN s.removed_words END
            FROM (SELECT s.compared_with = page.version_id) AS c (compared);
        END IF;
        IF seen.version_id IS NOT NULL THEN
            INSERT INTO store.sighting (organisation_id, site_id, page_id, version_id, seen_at)
            SELECT s.organisation_id, s.site_id, seen.page_id, seen.version_id, s.seen_at
            FROM generate_series(1, s.times);
        END IF;
        RETURN NEXT seen;
    END LOOP;
END
$$;
