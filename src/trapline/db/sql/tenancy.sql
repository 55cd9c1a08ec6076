-- name: EnsureOrganisation :exec
-- Create the organisation of callers without a key.
INSERT INTO tenancy.organisation (id, name)
VALUES (sqlc.arg(organisation_id), sqlc.arg(name))
ON CONFLICT DO NOTHING;

-- name: CreateOrganisation :one
-- Create an organisation; no row if the name or the id is taken.
INSERT INTO tenancy.organisation (id, name, foreign_id, max_concurrency, max_pages_per_day)
VALUES (
    sqlc.arg(organisation_id),
    sqlc.arg(name),
    sqlc.narg(foreign_id),
    sqlc.narg(max_concurrency),
    sqlc.narg(max_pages_per_day)
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: ListOrganisations :many
-- All organisations that the caller may see, oldest first.
SELECT * FROM tenancy.organisation
ORDER BY created_at, id;

-- name: FindOrganisation :one
-- One organisation by its id, its name or its id in another system.
SELECT * FROM tenancy.organisation
WHERE id::text = lower(sqlc.arg(reference)::text)
   OR lower(name) = lower(sqlc.arg(reference)::text)
   OR foreign_id = sqlc.arg(reference)::text
LIMIT 1;

-- name: RenameOrganisation :one
-- Change the name of an organisation.
UPDATE tenancy.organisation
SET name = sqlc.arg(name), updated_at = now()
WHERE id = sqlc.arg(organisation_id)
RETURNING *;

-- name: LimitOrganisation :one
-- Set both limits of an organisation; null means none.
UPDATE tenancy.organisation
SET max_concurrency = sqlc.narg(max_concurrency),
    max_pages_per_day = sqlc.narg(max_pages_per_day),
    updated_at = now()
WHERE id = sqlc.arg(organisation_id)
RETURNING *;

-- name: DeleteOrganisation :execrows
-- Delete an organisation with its members and keys.
DELETE FROM tenancy.organisation
WHERE id = sqlc.arg(organisation_id);

-- name: CreateMember :one
-- Add a member; no row if the organisation has one with that address.
INSERT INTO tenancy.member (organisation_id, email, full_name)
VALUES (sqlc.arg(organisation_id), sqlc.arg(email), sqlc.narg(full_name))
ON CONFLICT DO NOTHING
RETURNING *;

-- name: ListMembers :many
-- The members that the caller may see, oldest first.
SELECT * FROM tenancy.member
WHERE organisation_id = sqlc.arg(organisation_id)
ORDER BY created_at, id;

-- name: HasMember :one
-- Whether an organisation has a member.
SELECT EXISTS (
    SELECT FROM tenancy.member
    WHERE id = sqlc.arg(member_id) AND organisation_id = sqlc.arg(organisation_id)
) AS "has!";

-- name: DeleteMember :execrows
-- Remove a member.
DELETE FROM tenancy.member
WHERE id = sqlc.arg(member_id) AND organisation_id = sqlc.arg(organisation_id);

-- name: CreateKey :one
-- Store the hash of a new key.
-- returns: KeyRow
INSERT INTO tenancy.api_key (organisation_id, name, prefix, hash, scopes, created_by)
VALUES (
    sqlc.arg(organisation_id),
    sqlc.arg(name),
    sqlc.arg(prefix),
    sqlc.arg(hash),
    sqlc.arg(scopes)::text[],
    sqlc.narg(created_by)
)
RETURNING id, organisation_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at;

-- name: ListKeys :many
-- The keys of an organisation, revoked ones too, oldest first.
-- returns: KeyRow
SELECT id, organisation_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at
FROM tenancy.api_key
WHERE organisation_id = sqlc.arg(organisation_id)
ORDER BY created_at, id;

-- name: RevokeKey :one
-- Revoke a key by its id or prefix; a second call keeps the first time.
-- returns: KeyRow
UPDATE tenancy.api_key
SET revoked_at = coalesce(revoked_at, now())
WHERE organisation_id = sqlc.arg(organisation_id)
  AND (id::text = lower(sqlc.arg(reference)::text) OR prefix = sqlc.arg(reference)::text)
RETURNING id, organisation_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at;

-- name: FindCaller :one
-- What authentication needs: whether a key was ever created, the live key with this hash, and whether the
-- organisation of callers without a key exists. Revoked keys count: revoking the last key does not open
-- the server.
SELECT
    EXISTS (SELECT FROM tenancy.api_key) AS "any_key!",
    EXISTS (SELECT FROM tenancy.organisation o WHERE o.id = sqlc.arg(default_id)::uuid) AS "has_default!",
    k.id AS "api_key_id?", k.organisation_id AS "organisation_id?", k.scopes AS "scopes?",
    coalesce(k.last_used_at >= now() - interval '1 minute', false) AS "is_noted!"
FROM (SELECT sqlc.narg(hash)::bytea AS hash) AS given
LEFT JOIN tenancy.api_key k ON k.hash = given.hash AND k.revoked_at IS NULL;

-- name: IsLiveKey :one
-- Whether a key is not revoked.
SELECT EXISTS (
    SELECT FROM tenancy.api_key WHERE id = sqlc.arg(api_key_id) AND revoked_at IS NULL
) AS "live!";

-- name: TouchKey :exec
-- Record the use of a key, at most once a minute so that a busy key is not a hot row.
UPDATE tenancy.api_key
SET last_used_at = now()
WHERE id = sqlc.arg(api_key_id)
  AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: AnyKey :one
-- Whether any live key exists.
SELECT EXISTS (SELECT FROM tenancy.api_key WHERE revoked_at IS NULL) AS any_key;

-- name: DeleteRevokedKeys :execrows
-- Delete the revoked keys of all organisations.
DELETE FROM tenancy.api_key WHERE revoked_at IS NOT NULL;
