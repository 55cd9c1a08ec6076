-- name: InternHosts :exec
-- Make sure that every host has its row, in one order so that two workers cannot deadlock.
INSERT INTO frontier.host (organisation_id, name)
SELECT DISTINCT organisation_id, name
FROM unnest(sqlc.arg(organisation_ids)::uuid[], sqlc.arg(names)::text[]) AS new (organisation_id, name)
ORDER BY organisation_id, name
ON CONFLICT DO NOTHING;

-- name: FindHosts :many
-- The ids of hosts that have a row.
SELECT h.id AS host_id, h.organisation_id, h.name
FROM unnest(sqlc.arg(organisation_ids)::uuid[], sqlc.arg(names)::text[]) AS wanted (organisation_id, name)
JOIN frontier.host h USING (organisation_id, name);

-- name: InternUrls :exec
-- Make sure that every URL has its row, sorted by hash so that two workers cannot deadlock.
INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
SELECT organisation_id, host_id, secure, path, hash
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(host_ids)::bigint[],
    sqlc.arg(secures)::boolean[],
    sqlc.arg(paths)::text[],
    sqlc.arg(hashes)::bytea[]
) AS new (organisation_id, host_id, secure, path, hash)
ORDER BY organisation_id, hash
ON CONFLICT DO NOTHING;

-- name: FindUrls :many
-- The ids of URLs that have a row.
SELECT u.id AS url_id, u.organisation_id, u.hash
FROM unnest(sqlc.arg(organisation_ids)::uuid[], sqlc.arg(hashes)::bytea[]) AS wanted (organisation_id, hash)
JOIN frontier.url u USING (organisation_id, hash);
