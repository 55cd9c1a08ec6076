-- name: RecordPages :many
-- Record pages as seen; return the result of each, in order.
SELECT page_id AS "page_id!", version_id, number AS "number!", change AS "change!"
FROM store.record_pages(sqlc.arg(sightings)::store.new_sighting[]);

-- name: MarkPagesGone :many
-- Mark pages as gone; return those that were not gone before.
UPDATE store.page p
SET gone_at = gone.at
FROM (
    SELECT p.id, new.at
    FROM unnest(sqlc.arg(site_ids)::uuid[], sqlc.arg(url_ids)::bigint[], sqlc.arg(ats)::timestamptz[])
        AS new (site_id, url_id, at)
    JOIN store.page p USING (site_id, url_id)
    WHERE p.gone_at IS NULL AND p.version_id IS NOT NULL
    ORDER BY new.site_id, new.url_id
    FOR NO KEY UPDATE OF p
) AS gone
WHERE p.id = gone.id
RETURNING p.id AS page_id, p.organisation_id, p.site_id, p.url_id, p.version_id, gone.at;
