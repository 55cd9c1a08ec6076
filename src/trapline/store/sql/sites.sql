-- name: EnsureSite :exec
-- Create the implicit site of an organisation, host and variant on first use.
INSERT INTO store.site (organisation_id, name, base_url, variant, implicit)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(name), sqlc.arg(base_url), sqlc.arg(variant), true
)
ON CONFLICT DO NOTHING;

-- name: ImplicitSite :one
-- The implicit site of an organisation, host and variant.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND base_url = sqlc.arg(base_url)
    AND variant = sqlc.arg(variant) AND implicit AND deleted_at IS NULL;

-- name: CreateSite :one
-- Register a site; no row if the name is taken.
INSERT INTO store.site (organisation_id, name, base_url, config, created_by)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(name), sqlc.arg(base_url), sqlc.arg(config),
    sqlc.narg(created_by)
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: GetSite :one
-- A site by its id.
SELECT * FROM store.site WHERE id = sqlc.arg(site_id) AND deleted_at IS NULL;

-- name: SiteByName :one
-- A site by its name.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND name_key = lower(sqlc.arg(name)::text)
    AND deleted_at IS NULL;

-- name: DeletedSite :one
-- A soft-deleted site by its id.
SELECT * FROM store.site WHERE id = sqlc.arg(site_id) AND deleted_at IS NOT NULL;

-- name: ListSites :many
-- An organisation's sites, oldest first, after a key.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND deleted_at IS NULL
    AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status))
    AND (sqlc.narg(implicit)::boolean IS NULL OR implicit = sqlc.narg(implicit))
    AND (created_at, id) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::uuid)
ORDER BY created_at, id
LIMIT sqlc.arg(most)::integer;

-- name: ListSitesNewest :many
-- An organisation's sites, newest first, before a key.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND deleted_at IS NULL
    AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status))
    AND (sqlc.narg(implicit)::boolean IS NULL OR implicit = sqlc.narg(implicit))
    AND (created_at, id) < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before_id)::uuid)
ORDER BY created_at DESC, id DESC
LIMIT sqlc.arg(most)::integer;

-- name: ListSitesUpdated :many
-- An organisation's sites, last updated first, before a key.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND deleted_at IS NULL
    AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status))
    AND (sqlc.narg(implicit)::boolean IS NULL OR implicit = sqlc.narg(implicit))
    AND (updated_at, id) < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before_id)::uuid)
ORDER BY updated_at DESC, id DESC
LIMIT sqlc.arg(most)::integer;

-- name: ListSitesNamed :many
-- An organisation's sites by name, after one; names are unique regardless of case.
SELECT * FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND deleted_at IS NULL
    AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status))
    AND (sqlc.narg(implicit)::boolean IS NULL OR implicit = sqlc.narg(implicit))
    AND name_key > lower(sqlc.arg(after_name)::text)
ORDER BY name_key
LIMIT sqlc.arg(most)::integer;

-- name: CountSites :one
-- How many sites an organisation has.
SELECT count(*) AS sites FROM store.site
WHERE organisation_id = sqlc.arg(organisation_id) AND deleted_at IS NULL
    AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status))
    AND (sqlc.narg(implicit)::boolean IS NULL OR implicit = sqlc.narg(implicit));

-- name: UpdateSite :one
-- Update the given fields of a site, unless its config changed since it was read.
UPDATE store.site SET
    name = coalesce(sqlc.narg(name), name),
    base_url = coalesce(sqlc.narg(base_url), base_url),
    status = coalesce(sqlc.narg(status), status),
    config = coalesce(sqlc.narg(config), config),
    config_number = config_number + (sqlc.narg(config)::jsonb IS NOT NULL)::integer,
    updated_at = now()
WHERE id = sqlc.arg(site_id) AND deleted_at IS NULL
    AND config_number = sqlc.arg(config_number)
RETURNING *;

-- name: AddConfig :exec
-- Add a config to a site's history.
INSERT INTO store.site_config (site_id, number, organisation_id, config, created_by, note)
VALUES (
    sqlc.arg(site_id), sqlc.arg(number), sqlc.arg(organisation_id), sqlc.arg(config),
    sqlc.narg(created_by), sqlc.narg(note)
);

-- name: ConfigHistory :many
-- The configs that a site had, newest first, before a number.
SELECT * FROM store.site_config
WHERE site_id = sqlc.arg(site_id) AND number < sqlc.arg(before)::integer
ORDER BY number DESC
LIMIT sqlc.arg(most)::integer;

-- name: GetConfig :one
-- One config that a site had.
SELECT * FROM store.site_config WHERE site_id = sqlc.arg(site_id) AND number = sqlc.arg(number);

-- name: DeleteSite :execrows
-- Soft-delete a site; its rows stay until it is purged.
UPDATE store.site
SET deleted_at = coalesce(deleted_at, now()), purge = purge OR sqlc.arg(purge)::boolean,
    updated_at = now()
WHERE id = sqlc.arg(site_id);

-- name: SitesToPurge :many
-- Sites to purge.
SELECT id AS site_id FROM store.site WHERE purge ORDER BY id LIMIT sqlc.arg(most)::integer;

-- name: PurgePages :one
-- Delete a batch of a site's pages with their versions.
WITH gone AS (
    DELETE FROM store.page WHERE id IN (
        SELECT p.id FROM store.page p WHERE p.site_id = sqlc.arg(site_id)
        LIMIT sqlc.arg(most)::integer FOR UPDATE SKIP LOCKED
    ) RETURNING id
)
SELECT count(*) AS pages FROM gone;

-- name: PurgeChanges :one
-- Delete a batch of a site's change events.
WITH gone AS (
    DELETE FROM store.change WHERE id IN (
        SELECT c.id FROM store.change c WHERE c.site_id = sqlc.arg(site_id)
        LIMIT sqlc.arg(most)::integer
    ) RETURNING id
)
SELECT count(*) AS changes FROM gone;

-- name: PurgeContents :one
-- Delete a batch of a site's contents with their fingerprints.
WITH gone AS (
    DELETE FROM store.content_hash WHERE id IN (
        SELECT c.id FROM store.content_hash c WHERE c.site_id = sqlc.arg(site_id)
        LIMIT sqlc.arg(most)::integer
    ) RETURNING id
)
SELECT count(*) AS contents FROM gone;

-- name: PurgeSite :execrows
-- Delete a site that is marked for purging, with its remaining rows.
DELETE FROM store.site WHERE id = sqlc.arg(site_id) AND purge;
