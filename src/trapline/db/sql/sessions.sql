-- name: CreateSession :one
-- Store the hash of a new session's token.
INSERT INTO tenancy.session (
    organisation_id, api_key_id, admin_hash, hash, expires_at, client, user_agent
) VALUES (
    sqlc.arg(organisation_id), sqlc.narg(api_key_id), sqlc.narg(admin_hash), sqlc.arg(hash),
    sqlc.arg(expires_at), sqlc.narg(client), sqlc.narg(user_agent)
)
RETURNING id;

-- name: FindSession :one
-- The live session of a token, with the rights of its key as they are now.
SELECT
    s.id, s.organisation_id, s.api_key_id, s.admin_hash, s.rotated_at, s.expires_at,
    s.hash = sqlc.arg(hash)::bytea AS "current!",
    k.name AS "key_name?", k.scopes AS "scopes?", o.name AS organisation
FROM tenancy.session s
JOIN tenancy.organisation o ON o.id = s.organisation_id
LEFT JOIN tenancy.api_key k ON k.id = s.api_key_id
WHERE (s.hash = sqlc.arg(hash)::bytea
        OR (s.previous_hash = sqlc.arg(hash)::bytea AND s.rotated_at > now() - interval '1 minute'))
    AND s.revoked_at IS NULL AND s.expires_at > now() AND k.revoked_at IS NULL;

-- name: RotateSession :execrows
-- Give a session a new token; a minute long the old one still counts.
UPDATE tenancy.session
SET previous_hash = hash, hash = sqlc.arg(new_hash), rotated_at = now(),
    expires_at = sqlc.arg(expires_at)
WHERE id = sqlc.arg(id) AND hash = sqlc.arg(hash) AND revoked_at IS NULL;

-- name: LiveSessions :many
-- Which of these sessions are still live.
SELECT s.id FROM tenancy.session s LEFT JOIN tenancy.api_key k ON k.id = s.api_key_id
WHERE s.id = ANY (sqlc.arg(ids)::uuid[])
    AND s.revoked_at IS NULL AND s.expires_at > now() AND k.revoked_at IS NULL;

-- name: ListSessions :many
-- The live sessions of an organisation, newest first.
SELECT
    s.id, s.created_at, s.rotated_at, s.expires_at, s.client, s.user_agent,
    coalesce(k.name, 'administrator') AS "actor!"
FROM tenancy.session s LEFT JOIN tenancy.api_key k ON k.id = s.api_key_id
WHERE s.organisation_id = sqlc.arg(organisation_id)
    AND s.revoked_at IS NULL AND s.expires_at > now() AND k.revoked_at IS NULL
ORDER BY s.created_at DESC, s.id LIMIT sqlc.arg(most)::integer;

-- name: RevokeSession :execrows
-- End a session.
UPDATE tenancy.session SET revoked_at = now()
WHERE id = sqlc.arg(id) AND organisation_id = sqlc.arg(organisation_id) AND revoked_at IS NULL;

-- name: DropSessions :execrows
-- Delete sessions and share links that ended some time ago.
WITH links AS (
    DELETE FROM tenancy.share_link WHERE expires_at < now() - sqlc.arg(keep)::interval
)
DELETE FROM tenancy.session WHERE expires_at < now() - sqlc.arg(keep)::interval;

-- name: CreateShareLink :one
-- Store the hash of a new link's token.
INSERT INTO tenancy.share_link (organisation_id, hash, path, title, created_by, expires_at)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(hash), sqlc.arg(path), sqlc.arg(title),
    sqlc.arg(created_by), sqlc.arg(expires_at)
)
RETURNING id;

-- name: FindShareLink :one
-- The live link of a token.
SELECT id, organisation_id, path, title, expires_at FROM tenancy.share_link
WHERE hash = sqlc.arg(hash) AND revoked_at IS NULL AND expires_at > now();

-- name: ListShareLinks :many
-- The live links of an organisation, newest first.
SELECT id, path, title, created_by, created_at, expires_at FROM tenancy.share_link
WHERE organisation_id = sqlc.arg(organisation_id) AND revoked_at IS NULL AND expires_at > now()
ORDER BY created_at DESC, id LIMIT sqlc.arg(most)::integer;

-- name: RevokeShareLink :execrows
-- End a link.
UPDATE tenancy.share_link SET revoked_at = now()
WHERE id = sqlc.arg(id) AND organisation_id = sqlc.arg(organisation_id) AND revoked_at IS NULL;
