-- name: EnsureSite :exec
-- Create the implicit site of an organisation and host on first use.
INSERT INTO store.site (organisation_id, name, base_url, implicit)
VALUES (sqlc.arg(organisation_id), sqlc.arg(name), sqlc.arg(base_url), true)
ON CONFLICT DO NOTHING;

-- name: ImplicitSite :one
-- The implicit site of an organisation and host.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND base_url = sqlc.arg(base_url) AND implicit;
