-- name: FindMirror :one
-- Where the vectors are copied to, and how far.
SELECT id, url, copied_to, whole_at, tended_at FROM knowledge.mirror;

-- name: BeginMirror :one
-- Copy all vectors to a place from now on.
INSERT INTO knowledge.mirror (url) VALUES (sqlc.arg(url)) RETURNING id, url, copied_to, whole_at, tended_at;

-- name: DropMirror :exec
-- Copy vectors no more.
DELETE FROM knowledge.mirror;

-- name: DropChanges :exec
-- Forget what has changed.
DELETE FROM knowledge.mirror_change;

-- name: MirrorReached :exec
-- Note how far the first copy is, and whether it is whole.
UPDATE knowledge.mirror
SET
    copied_to = sqlc.arg(copied_to)::bigint,
    whole_at = CASE WHEN sqlc.arg(whole)::boolean THEN coalesce(whole_at, now()) END
WHERE id = sqlc.arg(mirror_id);

-- name: MirrorTended :exec
-- Note that somebody keeps the copy up to date.
UPDATE knowledge.mirror SET tended_at = now() WHERE id = sqlc.arg(mirror_id);

-- name: Changes :many
-- The next changes, oldest first.
SELECT id, chunk_id FROM knowledge.mirror_change ORDER BY id LIMIT sqlc.arg(most)::integer;

-- name: ChangesDone :exec
-- Remove changes that the copy has.
DELETE FROM knowledge.mirror_change WHERE id = ANY(sqlc.arg(ids)::bigint[]);

-- name: ChangedChunks :many
-- Chunks of a model whose vectors the copy may not have yet.
SELECT DISTINCT chunk_id FROM knowledge.mirror_change
WHERE model_id = sqlc.arg(model_id)
LIMIT sqlc.arg(most)::integer;

-- name: VectorsOf :many
-- Vectors with what a filter may ask of their texts.
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
-- All models of all organisations: their numbers, and what their vectors have in common.
SELECT id AS model_id, name, dimension, digest FROM knowledge.model;
