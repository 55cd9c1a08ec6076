-- name: AddAuditEntry :exec
-- Note who changed what; the actor is the key's name.
INSERT INTO tenancy.audit_entry (
    organisation_id, actor, api_key_id, channel, action, target, detail, client
) VALUES (
    sqlc.arg(organisation_id),
    coalesce(
        (SELECT k.name FROM tenancy.api_key k WHERE k.id = sqlc.narg(api_key_id)::uuid),
        'administrator'),
    sqlc.narg(api_key_id), sqlc.arg(channel), sqlc.arg(action), sqlc.narg(target),
    sqlc.arg(detail), sqlc.narg(client)
);

-- name: AuditEntries :many
-- An organisation's audit trail, newest first, from a position on.
-- returns: AuditEntryRow
SELECT id, created_at, actor, api_key_id, channel, action, target, detail, client
FROM tenancy.audit_entry
WHERE organisation_id = sqlc.arg(organisation_id) AND id < sqlc.arg(before)::bigint
    AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action))
    AND (sqlc.narg(actor)::text IS NULL OR actor = sqlc.narg(actor))
    AND (sqlc.narg(target)::text IS NULL OR target = sqlc.narg(target))
ORDER BY id DESC LIMIT sqlc.arg(most)::integer;

-- name: DropAuditEntries :execrows
-- Delete entries that are past their time.
DELETE FROM tenancy.audit_entry WHERE created_at < now() - sqlc.arg(keep)::interval;
