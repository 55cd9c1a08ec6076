-- name: FindMirror :one
-- The mirror, and how far its first copy is.
SELECT id, url, copied_to, whole_at, tended_at FROM knowledge.mirror;

-- name: BeginMirror :one
-- Start a mirror.
INSERT INTO knowledge.mirror (url) VALUES (sqlc.arg(url)) RETURNING id, url, copied_to, whole_at, tended_at;

-- name: DropMirror :exec
-- Delete the mirror.
DELETE FROM knowledge.mirror;

-- name: ClearMirrorChanges :exec
-- Delete all recorded changes.
DELETE FROM knowledge.mirror_change;

-- name: UpdateMirrorProgress :exec
-- Record how far the first copy is, and whether it is complete.
UPDATE knowledge.mirror
SET
    copied_to = sqlc.arg(copied_to)::bigint,
    whole_at = CASE WHEN sqlc.arg(whole)::boolean THEN coalesce(whole_at, now()) END
WHERE id = sqlc.arg(mirror_id);

-- name: TouchMirror :exec
-- Record that a process syncs the mirror.
UPDATE knowledge.mirror SET tended_at = now() WHERE id = sqlc.arg(mirror_id);

-- name: NextMirrorChanges :many
-- The next changes, oldest first.
SELECT id, chunk_id FROM knowledge.mirror_change ORDER BY id LIMIT sqlc.arg(most)::integer;

-- name: DeleteMirrorChanges :exec
-- Delete changes that were copied.
DELETE FROM knowledge.mirror_change WHERE id = ANY(sqlc.arg(ids)::bigint[]);

-- name: ChangedChunks :many
-- Chunks of a model whose vectors may not be copied yet.
SELECT DISTINCT chunk_id FROM knowledge.mirror_change
WHERE model_id = sqlc.arg(model_id)
LIMIT sqlc.arg(most)::integer;

-- name: VectorsOfChunks :many
-- Vectors with the filterable fields of their texts.
SELECT
    v.chunk_id, v.model_id, v.organisation_id, v.entry_id, v.embedding::real[] AS "numbers!", e.source_id,
    e.language, e.content_type
FROM knowledge.vector AS v
INNER JOIN knowledge.entry AS e ON v.entry_id = e.id
WHERE v.chunk_id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: VectorsAfter :many
-- The next chunks that have vectors.
SELECT chunk_id FROM knowledge.vector WHERE chunk_id > sqlc.arg(after)::bigint
ORDER BY chunk_id LIMIT sqlc.arg(most)::integer;

-- name: MirroredModels :many
-- All models of all organisations.
SELECT id AS model_id, name, dimension, digest FROM knowledge.model;
