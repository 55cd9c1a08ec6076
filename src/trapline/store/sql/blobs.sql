-- name: AddBlobs :exec
-- Store bytes, sorted by hash so that two workers cannot deadlock. Known ones are locked until the
-- end of the transaction, so that the sweeper cannot take them from under a new use.
INSERT INTO store.blob AS b (sha256, size, place, compressed, data)
SELECT sha256, size, place, compressed, data
FROM unnest(
    sqlc.arg(hashes)::bytea[],
    sqlc.arg(sizes)::bigint[],
    sqlc.arg(places)::text[],
    sqlc.arg(compresseds)::boolean[],
    sqlc.narg(datas)::bytea[]
) AS new (sha256, size, place, compressed, data)
ORDER BY sha256
ON CONFLICT (sha256) DO UPDATE SET used_at = now()
WHERE b.used_at < now() - interval '1 hour';

-- name: GetBlob :one
-- Bytes by their hash.
SELECT * FROM store.blob WHERE sha256 = sqlc.arg(hash);
