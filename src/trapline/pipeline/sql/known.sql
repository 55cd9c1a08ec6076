-- name: KnownPage :one
-- What is known of a URL in a site, and the version that a 304 would confirm, if it is still there.
SELECT c.*, p.version_id, p.content_hash
FROM frontier.url u
JOIN frontier.candidate c ON c.url_id = u.id
LEFT JOIN store.page p ON p.site_id = c.site_id AND p.url_id = c.url_id
WHERE u.organisation_id = sqlc.arg(organisation_id)
  AND u.hash = sqlc.arg(hash)
  AND c.site_id = sqlc.arg(site_id);

-- name: LinksOf :one
-- The links of a version, for a page that has not changed since.
SELECT links FROM store.version WHERE id = sqlc.arg(version_id);

-- name: PreviousVersion :one
-- What the version before says, to be compared with what was found.
SELECT text, markdown, extractor_version, sha256 FROM store.version WHERE id = sqlc.arg(version_id);
