-- name: KnownPages :many
-- What earlier visits left of URLs in sites, and the version that a 304 would confirm, if it is there.
SELECT c.*, u.hash, p.version_id
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[], sqlc.arg(site_ids)::uuid[], sqlc.arg(hashes)::bytea[]
) AS wanted (organisation_id, site_id, hash)
JOIN frontier.url u USING (organisation_id, hash)
JOIN frontier.candidate c ON c.site_id = wanted.site_id AND c.url_id = u.id
LEFT JOIN store.page p ON p.site_id = c.site_id AND p.url_id = c.url_id
WHERE c.last_visit_at IS NOT NULL;

-- name: LinksOf :one
-- The links of a version, for a page that has not changed since.
SELECT links FROM store.version WHERE id = sqlc.arg(version_id);
