-- name: FindModel :one
-- The id of a model of an organisation.
SELECT id AS model_id FROM knowledge.model
WHERE
    organisation_id = sqlc.arg(organisation_id) AND name = sqlc.arg(name)
    AND dimension = sqlc.arg(dimension) AND digest = sqlc.arg(digest);

-- name: AddModel :exec
-- Insert a model of an organisation, unless another transaction did.
INSERT INTO knowledge.model (organisation_id, name, dimension, digest)
VALUES (sqlc.arg(organisation_id), sqlc.arg(name), sqlc.arg(dimension), sqlc.arg(digest))
ON CONFLICT DO NOTHING;

-- name: ListModels :many
-- The models of an organisation; of one name, older weights first.
SELECT id AS model_id, name, dimension, digest FROM knowledge.model
WHERE organisation_id = sqlc.arg(organisation_id)
ORDER BY id;

-- name: BeginGeneration :exec
-- Record the model of a source's generation, unless it has one.
INSERT INTO knowledge.generation (source_id, generation, organisation_id, model_id)
VALUES (sqlc.arg(source_id), sqlc.arg(generation), sqlc.arg(organisation_id), sqlc.arg(model_id))
ON CONFLICT DO NOTHING;

-- name: GenerationModel :one
-- The embedding model of a source's generation.
SELECT g.model_id, m.name, m.dimension, m.digest
FROM knowledge.generation AS g
INNER JOIN knowledge.model AS m ON g.model_id = m.id
WHERE g.source_id = sqlc.arg(source_id) AND g.generation = sqlc.arg(generation);

-- name: DropEntries :execrows
-- Delete texts of a source's generation with their passages.
DELETE FROM knowledge.entry
WHERE
    source_id = sqlc.arg(source_id) AND generation = sqlc.arg(generation)
    AND uri = ANY(sqlc.arg(uris)::text[]);

-- name: DropEntriesOfAllGenerations :execrows
-- Remove texts of a source with their passages, in all generations.
DELETE FROM knowledge.entry
WHERE source_id = sqlc.arg(source_id) AND uri = ANY(sqlc.arg(uris)::text[]);

-- name: AddEntries :many
-- Insert texts of a source.
INSERT INTO knowledge.entry (
    organisation_id, source_id, generation, uri, path, title, language, content_type, page_id,
    version_id, content_hash, markdown, dated_at
)
SELECT
    sqlc.arg(organisation_id), sqlc.arg(source_id), sqlc.arg(generation), new.uri, new.path, new.title,
    new.language, new.content_type, new.page_id, new.version_id, new.content_hash, new.markdown,
    coalesce(new.dated_at, now())
FROM unnest(
    sqlc.arg(uris)::text[],
    sqlc.arg(paths)::text[],
    sqlc.narg(titles)::text[],
    sqlc.arg(languages)::text[],
    sqlc.narg(content_types)::text[],
    sqlc.narg(page_ids)::uuid[],
    sqlc.narg(version_ids)::bigint[],
    sqlc.arg(content_hashes)::bytea[],
    sqlc.narg(markdowns)::text[],
    sqlc.narg(dates)::timestamptz[]
) AS new (
    uri, path, title, language, content_type, page_id, version_id, content_hash, markdown, dated_at
)
RETURNING id AS entry_id, uri;

-- name: AddChunks :many
-- Insert passages. The headings of a passage are one text, separated by unit separators.
INSERT INTO knowledge.chunk (
    organisation_id, source_id, entry_id, ordinal, starts_at, ends_at, headings, words, tokens, hash
)
SELECT
    sqlc.arg(organisation_id), sqlc.arg(source_id), new.entry_id, new.ordinal, new.starts_at, new.ends_at,
    string_to_array(new.headings, chr(31)), new.words, new.tokens, new.hash
FROM unnest(
    sqlc.arg(entry_ids)::bigint[],
    sqlc.arg(ordinals)::integer[],
    sqlc.arg(starts)::integer[],
    sqlc.arg(ends)::integer[],
    sqlc.arg(headings)::text[],
    sqlc.arg(words)::text[],
    sqlc.arg(tokens)::integer[],
    sqlc.arg(hashes)::bytea[]
) AS new (entry_id, ordinal, starts_at, ends_at, headings, words, tokens, hash)
RETURNING id AS chunk_id, entry_id, ordinal;

-- name: AddVectors :exec
-- Insert vectors; their numbers are concatenated.
INSERT INTO knowledge.vector (chunk_id, organisation_id, model_id, entry_id, embedding)
SELECT
    new.chunk_id, sqlc.arg(organisation_id), sqlc.arg(model_id), new.entry_id,
    (sqlc.arg(numbers)::real[])[
        (new.place - 1) * sqlc.arg(dimension)::integer + 1:new.place * sqlc.arg(dimension)::integer
    ]::halfvec
FROM unnest(sqlc.arg(chunk_ids)::bigint[], sqlc.arg(entry_ids)::bigint[])
WITH ORDINALITY AS new (chunk_id, entry_id, place);

-- name: ReusableVectors :many
-- Vectors of passages with the same fingerprint and model.
SELECT DISTINCT ON (c.hash) c.hash, v.embedding::real[] AS "numbers!"
FROM knowledge.chunk AS c
INNER JOIN knowledge.vector AS v ON c.id = v.chunk_id
WHERE
    c.hash = ANY(sqlc.arg(hashes)::bytea[]) AND c.organisation_id = sqlc.arg(organisation_id)
    AND v.model_id = sqlc.arg(model_id)
ORDER BY c.hash, c.id;

-- name: SwapGeneration :execrows
-- Make a generation the searched one; an older one never replaces a newer one.
UPDATE knowledge.source SET generation = sqlc.arg(generation), updated_at = now()
WHERE id = sqlc.arg(source_id) AND generation <= sqlc.arg(generation);

-- name: DropOlderEntries :execrows
-- Delete a batch of a source's texts of older generations.
DELETE FROM knowledge.entry
WHERE id IN (
    SELECT e.id FROM knowledge.entry AS e
    INNER JOIN knowledge.source AS s ON e.source_id = s.id
    WHERE s.id = sqlc.arg(source_id) AND e.generation < s.generation
    LIMIT sqlc.arg(most)
);

-- name: DropOlderGenerations :exec
-- Delete a source's older generations that have no texts left.
DELETE FROM knowledge.generation AS g
USING knowledge.source AS s
WHERE
    g.source_id = sqlc.arg(source_id) AND s.id = g.source_id AND g.generation < s.generation
    AND NOT EXISTS (
        SELECT FROM knowledge.entry AS e
        WHERE e.source_id = g.source_id AND e.generation = g.generation
    );

-- name: SourcesWithOldGenerations :many
-- Sources that still have older generations.
SELECT DISTINCT g.source_id
FROM knowledge.generation AS g
INNER JOIN knowledge.source AS s ON g.source_id = s.id
WHERE g.generation < s.generation
LIMIT sqlc.arg(most);
