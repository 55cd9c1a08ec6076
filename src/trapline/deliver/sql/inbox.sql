-- name: Receive :many
-- Record messages; return only those that are new.
INSERT INTO deliver.inbox (organisation_id, message_id, sender, type, subject, sha256)
SELECT sqlc.arg(organisation_id), message_id, sqlc.arg(sender), type, subject, sha256
FROM unnest(
    sqlc.arg(message_ids)::uuid[], sqlc.arg(types)::text[], sqlc.arg(subjects)::text[],
    sqlc.narg(hashes)::bytea[]
) AS new (message_id, type, subject, sha256)
ORDER BY message_id
ON CONFLICT DO NOTHING
RETURNING message_id;

-- name: DropReceived :execrows
-- Delete old messages, which no sender repeats.
DELETE FROM deliver.inbox WHERE received_at < sqlc.arg(before);
