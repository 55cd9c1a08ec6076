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

-- name: MarkBlobs :many
-- Of blobs that nobody put or marked since a moment, note those that have a use as used now, and
-- name the others. One that is locked is being put this very moment.
WITH old AS (
    SELECT b.sha256, EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256) AS used
    FROM store.blob b
    WHERE b.used_at < sqlc.arg(before)
    ORDER BY b.used_at
    LIMIT sqlc.arg(most)::integer
    FOR UPDATE OF b SKIP LOCKED
),
marked AS (
    UPDATE store.blob b SET used_at = now() FROM old WHERE b.sha256 = old.sha256 AND old.used
)
SELECT sha256, used FROM old;

-- name: DropBlobs :many
-- Forget blobs that are still without a use; what lies outside the database is the caller's to remove.
DELETE FROM store.blob b
WHERE b.sha256 = ANY (sqlc.arg(hashes)::bytea[])
  AND b.used_at < sqlc.arg(before)
  AND NOT EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256)
RETURNING b.sha256, b.place;

-- name: HoldHashes :many
-- Take the places of hashes that have no row, so that nobody can put them meanwhile.
INSERT INTO store.blob (sha256, size, place, compressed)
SELECT hash, 0, sqlc.arg(place), false FROM unnest(sqlc.arg(hashes)::bytea[]) AS hash
ORDER BY hash
ON CONFLICT DO NOTHING
RETURNING sha256;

-- name: ReleaseHashes :exec
-- Give the places back.
DELETE FROM store.blob WHERE sha256 = ANY (sqlc.arg(hashes)::bytea[]);

-- name: KnownHashes :many
-- Which of these have a row.
SELECT sha256 FROM store.blob WHERE sha256 = ANY (sqlc.arg(hashes)::bytea[]);

-- name: ShelvedHashes :many
-- Hashes of blobs at a place, in order, after one.
SELECT sha256 FROM store.blob
WHERE place = sqlc.arg(place) AND sha256 > sqlc.arg(after)::bytea
ORDER BY sha256
LIMIT sqlc.arg(most)::integer;

-- name: MissingBlobs :many
-- Bytes that something names and nothing holds.
SELECT DISTINCT u.sha256::bytea AS "sha256!"
FROM store.blob_use u
WHERE NOT EXISTS (SELECT FROM store.blob b WHERE b.sha256 = u.sha256)
LIMIT sqlc.arg(most)::integer;

-- name: UnusedBlobs :many
-- Bytes that nothing has named for longer than they are kept.
SELECT b.sha256
FROM store.blob b
WHERE b.used_at < sqlc.arg(before)
  AND NOT EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256)
LIMIT sqlc.arg(most)::integer;

-- name: BlobsElsewhere :many
-- Hashes of blobs that are not at a place, in order, after one; they stay as they are until the end
-- of the transaction.
SELECT sha256 FROM store.blob
WHERE place <> sqlc.arg(place) AND sha256 > sqlc.arg(after)::bytea
ORDER BY sha256 LIMIT sqlc.arg(most)::integer
FOR UPDATE;

-- name: PlaceBlob :exec
-- Note where a blob is now.
UPDATE store.blob SET place = sqlc.arg(place), data = sqlc.narg(data) WHERE sha256 = sqlc.arg(hash);

-- name: HashesAt :many
-- Which of these are at a place.
SELECT sha256 FROM store.blob
WHERE place = sqlc.arg(place) AND sha256 = ANY (sqlc.arg(hashes)::bytea[]);

-- name: Places :many
-- What lies where.
SELECT place, count(*) AS blobs, sum(size)::bigint AS "bytes!"
FROM store.blob GROUP BY place ORDER BY place;
