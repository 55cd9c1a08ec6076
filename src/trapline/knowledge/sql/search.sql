-- name: SearchedModels :many
-- The models of the searched generations: whether they have an HNSW index, and where a complete copy is.
SELECT
    m.id AS model_id, m.name, m.dimension, m.digest, (i.indexrelid IS NOT NULL)::boolean AS "indexed!",
    copy.id AS mirror_id, copy.url AS mirror_url
FROM knowledge.model AS m
LEFT JOIN knowledge.mirror AS copy ON copy.whole_at IS NOT NULL
LEFT JOIN pg_catalog.pg_index AS i
    ON i.indexrelid = to_regclass('knowledge.vector_hnsw_' || m.id) AND i.indisvalid
WHERE
    m.organisation_id = sqlc.arg(organisation_id)
    AND EXISTS (
        SELECT FROM knowledge.generation AS g
        INNER JOIN knowledge.source AS s ON g.source_id = s.id AND g.generation = s.generation
        WHERE g.model_id = m.id
    )
ORDER BY m.id;

-- name: ListContentTypes :many
-- The media types of an organisation's texts, by a loose index scan.
WITH RECURSIVE hops AS (
    (
        SELECT e.content_type FROM knowledge.entry AS e
        WHERE e.organisation_id = sqlc.arg(organisation_id) AND e.content_type IS NOT NULL
        ORDER BY e.content_type LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT e.content_type FROM knowledge.entry AS e
        WHERE e.organisation_id = sqlc.arg(organisation_id) AND e.content_type > h.content_type
        ORDER BY e.content_type LIMIT 1
    )
    FROM hops AS h WHERE h.content_type IS NOT NULL
)
SELECT content_type AS "content_type!" FROM hops WHERE content_type IS NOT NULL;

-- name: EstimateMatching :one
-- The estimated number of texts that match a filter.
SELECT knowledge.estimate_matching_entries(
    sqlc.arg(organisation_id)::uuid,
    sqlc.narg(sources)::uuid[],
    sqlc.narg(sites)::uuid[],
    sqlc.narg(applications)::uuid[],
    sqlc.narg(kinds)::text[],
    sqlc.narg(languages)::text[],
    sqlc.narg(types)::text[],
    sqlc.narg(hosts)::text[],
    sqlc.narg(not_hosts)::text[],
    sqlc.narg(path)::text,
    sqlc.narg(since)::timestamptz,
    sqlc.narg(until)::timestamptz
) AS "texts!";

-- name: IndexedPassages :one
-- The number of passages in an organisation's keyword index, including deleted ones.
SELECT coalesce(sum(texts), 0)::bigint AS "passages!"
FROM knowledge.segment WHERE organisation_id = sqlc.arg(organisation_id);

-- name: MatchingChunks :many
-- Passages of texts that match a filter, up to a limit.
SELECT c.id AS chunk_id
FROM knowledge.matching_entries(
    sqlc.arg(organisation_id)::uuid,
    sqlc.narg(sources)::uuid[],
    sqlc.narg(sites)::uuid[],
    sqlc.narg(applications)::uuid[],
    sqlc.narg(kinds)::text[],
    sqlc.narg(languages)::text[],
    sqlc.narg(types)::text[],
    sqlc.narg(hosts)::text[],
    sqlc.narg(not_hosts)::text[],
    sqlc.narg(path)::text,
    sqlc.narg(since)::timestamptz,
    sqlc.narg(until)::timestamptz
) AS m
INNER JOIN knowledge.chunk AS c ON m.entry_id = c.entry_id
LIMIT sqlc.arg(most)::integer;

-- name: MatchingEntries :one
-- Texts that match a filter, in one array, up to a limit.
SELECT coalesce(array_agg(fits.entry_id), '{}')::bigint[] AS "entry_ids!"
FROM (
    SELECT m.entry_id
    FROM knowledge.matching_entries(
        sqlc.arg(organisation_id)::uuid,
        sqlc.narg(sources)::uuid[],
        sqlc.narg(sites)::uuid[],
        sqlc.narg(applications)::uuid[],
        sqlc.narg(kinds)::text[],
        sqlc.narg(languages)::text[],
        sqlc.narg(types)::text[],
        sqlc.narg(hosts)::text[],
        sqlc.narg(not_hosts)::text[],
        sqlc.narg(path)::text,
        sqlc.narg(since)::timestamptz,
        sqlc.narg(until)::timestamptz
    ) AS m
    LIMIT sqlc.arg(most)::integer
) AS fits;

-- name: FilterChunks :many
-- Those of these passages that match a filter: one lookup for each, no scan.
SELECT c.id AS chunk_id, c.entry_id
FROM knowledge.chunk AS c
CROSS JOIN LATERAL (
    SELECT m.entry_id
    FROM knowledge.matching_entries(
        sqlc.arg(organisation_id)::uuid,
        sqlc.narg(sources)::uuid[],
        sqlc.narg(sites)::uuid[],
        sqlc.narg(applications)::uuid[],
        sqlc.narg(kinds)::text[],
        sqlc.narg(languages)::text[],
        sqlc.narg(types)::text[],
        sqlc.narg(hosts)::text[],
        sqlc.narg(not_hosts)::text[],
        sqlc.narg(path)::text,
        sqlc.narg(since)::timestamptz,
        sqlc.narg(until)::timestamptz
    ) AS m
    WHERE m.entry_id = c.entry_id
    OFFSET 0
) AS fits
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: NearestByIndex :many
-- The passages nearest to a vector that match a filter, by a model's HNSW index.
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest_chunks(
    sqlc.arg(model_id)::integer,
    sqlc.arg(dimension)::integer,
    sqlc.arg(numbers)::real[],
    sqlc.arg(most)::integer,
    sqlc.arg(scanned)::integer,
    sqlc.arg(organisation_id)::uuid,
    sqlc.narg(sources)::uuid[],
    sqlc.narg(sites)::uuid[],
    sqlc.narg(applications)::uuid[],
    sqlc.narg(kinds)::text[],
    sqlc.narg(languages)::text[],
    sqlc.narg(types)::text[],
    sqlc.narg(hosts)::text[],
    sqlc.narg(not_hosts)::text[],
    sqlc.narg(path)::text,
    sqlc.narg(since)::timestamptz,
    sqlc.narg(until)::timestamptz
);

-- name: NearestAmong :many
-- The nearest of some passages to a vector, exact.
SELECT v.chunk_id, (-(v.embedding <#> sqlc.arg(numbers)::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.chunk_id = ANY(sqlc.arg(chunk_ids)::bigint[]) AND v.model_id = sqlc.arg(model_id)
ORDER BY v.embedding <#> sqlc.arg(numbers)::real[]::halfvec
LIMIT sqlc.arg(most)::integer;

-- name: NearestOfEntries :many
-- The nearest passages of some texts to a vector, exact.
SELECT v.chunk_id, (-(v.embedding <#> sqlc.arg(numbers)::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.entry_id = ANY(sqlc.arg(entry_ids)::bigint[]) AND v.model_id = sqlc.arg(model_id)
ORDER BY v.embedding <#> sqlc.arg(numbers)::real[]::halfvec
LIMIT sqlc.arg(most)::integer;

-- name: NearestInEntriesByIndex :many
-- The nearest passages of some texts to a vector, by a model's HNSW index.
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest_chunks_in_entries(
    sqlc.arg(model_id)::integer,
    sqlc.arg(dimension)::integer,
    sqlc.arg(numbers)::real[],
    sqlc.arg(most)::integer,
    sqlc.arg(scanned)::integer,
    sqlc.arg(entry_ids)::bigint[]
);

-- name: NearestOfAll :many
-- The nearest passages of a model to a vector, exact.
SELECT v.chunk_id, (-(v.embedding <#> sqlc.arg(numbers)::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.model_id = sqlc.arg(model_id)
ORDER BY v.embedding <#> sqlc.arg(numbers)::real[]::halfvec
LIMIT sqlc.arg(most)::integer;

-- name: ChunkEntries :many
-- The texts of passages, with the hashes that tell duplicates.
SELECT c.id AS chunk_id, c.entry_id, c.hash, e.content_hash, e.uri
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: ChunkDetails :many
-- Passages with everything that a result shows.
SELECT
    c.id AS chunk_id, c.entry_id, c.source_id, c.ordinal, c.starts_at, c.ends_at, c.headings, c.words,
    c.tokens, c.hash, e.uri, e.path, e.title, e.language, e.content_type, e.page_id, e.version_id,
    e.content_hash, e.dated_at, s.name AS source_name, s.kind AS source_kind, s.site_id, s.application_id
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
INNER JOIN knowledge.source AS s ON c.source_id = s.id
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: ChunkTexts :many
-- The words and headings of passages.
SELECT c.id AS chunk_id, c.headings, c.words, e.title, e.language
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: FindEntries :many
-- The searched texts of a page, a URI or an id.
SELECT e.id AS entry_id, e.title, e.uri
FROM knowledge.entry AS e
INNER JOIN knowledge.source AS s ON e.source_id = s.id AND e.generation = s.generation
WHERE
    s.organisation_id = sqlc.arg(organisation_id)
    AND (
        e.page_id = sqlc.narg(page_id)::uuid OR e.uri = sqlc.narg(uri)::text
        OR e.id = sqlc.narg(entry_id)::bigint
    )
ORDER BY e.id
LIMIT 100;

-- name: MeanVectors :many
-- The mean vector of texts, for each model.
SELECT v.model_id, avg(v.embedding)::real[] AS "numbers!"
FROM knowledge.vector AS v
WHERE v.entry_id = ANY(sqlc.arg(entry_ids)::bigint[])
GROUP BY v.model_id;

-- name: SimilarTerms :many
-- Terms that are spelt like a word, with their document frequency.
SELECT p.term, sum(p.texts)::bigint AS "texts!"
FROM knowledge.posting AS p
WHERE
    p.segment_id = ANY(sqlc.arg(segment_ids)::bigint[]) AND p.part = 0
    AND p.term >= sqlc.arg(first)::text AND p.term < sqlc.arg(last)::text
    AND length(p.term) BETWEEN sqlc.arg(shortest)::integer AND sqlc.arg(longest)::integer
    AND similarity(p.term, sqlc.arg(word)::text) >= sqlc.arg(least)::real
GROUP BY p.term
ORDER BY similarity(p.term, sqlc.arg(word)::text) DESC
LIMIT 200;

-- name: ModelsToIndex :many
-- Models with many vectors and no index.
SELECT m.id AS model_id, m.dimension, n.vectors AS "vectors!"
FROM knowledge.model AS m
CROSS JOIN LATERAL (
    SELECT count(*) AS vectors FROM (
        SELECT FROM knowledge.vector AS v WHERE v.model_id = m.id LIMIT sqlc.arg(many)::integer
    ) AS counted
) AS n
WHERE
    NOT EXISTS (
        SELECT FROM pg_catalog.pg_index AS i
        WHERE i.indexrelid = to_regclass('knowledge.vector_hnsw_' || m.id) AND i.indisvalid
    )
    AND n.vectors >= sqlc.arg(many)::integer;

-- name: ObsoleteIndexes :many
-- HNSW indexes to drop: the model is deleted or has few vectors, or the build did not finish.
SELECT c.relname::text AS "name!"
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_index AS i ON c.oid = i.indexrelid
WHERE
    c.relnamespace = 'knowledge'::regnamespace AND c.relname LIKE 'vector_hnsw_%'
    AND (
        NOT i.indisvalid
        OR (
            SELECT count(*) FROM (
                SELECT FROM knowledge.vector AS v
                WHERE v.model_id = substring(c.relname FROM '\d+$')::integer
                LIMIT sqlc.arg(few)::integer
            ) AS counted
        ) < sqlc.arg(few)::integer
    );
