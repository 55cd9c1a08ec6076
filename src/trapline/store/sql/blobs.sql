-- name: AddBlobs :exec
-- Insert blobs, sorted by hash so that two workers cannot deadlock. Existing ones are locked until the
-- end of the transaction, so that garbage collection cannot delete them under a new reference.
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
-- A blob by its hash.
SELECT * FROM store.blob WHERE sha256 = sqlc.arg(hash);

-- name: MarkBlobs :many
-- Of blobs neither stored nor marked since a time, mark the referenced ones and return which are not.
-- A locked one is being stored right now.
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
-- Delete blobs that are still unreferenced; the caller removes bytes outside the database.
DELETE FROM store.blob b
WHERE b.sha256 = ANY (sqlc.arg(hashes)::bytea[])
  AND b.used_at < sqlc.arg(before)
  AND NOT EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256)
RETURNING b.sha256, b.place;

-- name: ReserveHashes :many
-- Insert placeholder rows for hashes, so that nobody can store them meanwhile.
INSERT INTO store.blob (sha256, size, place, compressed)
SELECT hash, 0, sqlc.arg(place), false FROM unnest(sqlc.arg(hashes)::bytea[]) AS hash
ORDER BY hash
ON CONFLICT DO NOTHING
RETURNING sha256;

-- name: ReleaseHashes :exec
-- Delete placeholder rows.
DELETE FROM store.blob WHERE sha256 = ANY (sqlc.arg(hashes)::bytea[]);

-- name: ExistingHashes :many
-- Which of these hashes have a row.
SELECT sha256 FROM store.blob WHERE sha256 = ANY (sqlc.arg(hashes)::bytea[]);

-- name: HashesInPlace :many
-- Hashes of blobs at a place, in order, after one.
SELECT sha256 FROM store.blob
WHERE place = sqlc.arg(place) AND sha256 > sqlc.arg(after)::bytea
ORDER BY sha256
LIMIT sqlc.arg(most)::integer;

-- name: MissingBlobs :many
-- Referenced blobs without a row.
SELECT DISTINCT u.sha256::bytea AS "sha256!"
FROM store.blob_use u
WHERE NOT EXISTS (SELECT FROM store.blob b WHERE b.sha256 = u.sha256)
LIMIT sqlc.arg(most)::integer;

-- name: UnusedBlobs :many
-- Blobs unreferenced for longer than the grace period.
SELECT b.sha256
FROM store.blob b
WHERE b.used_at < sqlc.arg(before)
  AND NOT EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256)
LIMIT sqlc.arg(most)::integer;

-- name: BlobsOutsidePlace :many
-- Hashes of blobs that are not at a place, in order, after one; locked until the end of the transaction.
SELECT sha256 FROM store.blob
WHERE place <> sqlc.arg(place) AND sha256 > sqlc.arg(after)::bytea
ORDER BY sha256 LIMIT sqlc.arg(most)::integer
FOR UPDATE;

-- name: PlaceBlob :exec
-- Set the place of a blob.
UPDATE store.blob SET place = sqlc.arg(place), data = sqlc.narg(data) WHERE sha256 = sqlc.arg(hash);

-- name: HashesAt :many
-- Which of these hashes are at a place.
SELECT sha256 FROM store.blob
WHERE place = sqlc.arg(place) AND sha256 = ANY (sqlc.arg(hashes)::bytea[]);

-- name: CountByPlace :many
-- The number and the size of blobs by place.
SELECT place, count(*) AS blobs, sum(size)::bigint AS "bytes!"
FROM store.blob GROUP BY place ORDER BY place;
