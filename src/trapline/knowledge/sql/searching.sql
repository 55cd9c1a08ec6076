-- name: SearchedModels :many
-- The models of what is searched: whether an HNSW index is over their vectors, and where a whole copy is.
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

-- name: ContentTypes :many
-- The media types that texts of an organisation have, by hopping from one to the next in the index.
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
-- About how many texts fit a filter.
SELECT knowledge.estimate_matching(
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
-- How many passages an organisation's keyword index is over, some of which may be gone.
SELECT coalesce(sum(texts), 0)::bigint AS "passages!"
FROM knowledge.segment WHERE organisation_id = sqlc.arg(organisation_id);

-- name: MatchingChunks :many
-- Passages of texts that fit a filter, as far as there are not too many.
SELECT c.id AS chunk_id
FROM knowledge.matching(
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
-- Texts that fit a filter, in one array, as far as there are not too many.
SELECT coalesce(array_agg(fits.entry_id), '{}')::bigint[] AS "entry_ids!"
FROM (
    SELECT m.entry_id
    FROM knowledge.matching(
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

-- name: Matching :many
-- Which of these passages fit a filter: a look at the text of each, not at all texts.
SELECT c.id AS chunk_id, c.entry_id
FROM knowledge.chunk AS c
CROSS JOIN LATERAL (
    SELECT m.entry_id
    FROM knowledge.matching(
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

-- name: Nearest :many
-- The passages that fit a filter and are nearest to a vector, by a model's HNSW index.
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest(
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
-- Of some passages the nearest to a vector, exactly.
SELECT v.chunk_id, (-(v.embedding <#> sqlc.arg(numbers)::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.chunk_id = ANY(sqlc.arg(chunk_ids)::bigint[]) AND v.model_id = sqlc.arg(model_id)
ORDER BY v.embedding <#> sqlc.arg(numbers)::real[]::halfvec
LIMIT sqlc.arg(most)::integer;

-- name: NearestOfEntries :many
-- Of all passages of some texts the nearest to a vector, exactly.
SELECT v.chunk_id, (-(v.embedding <#> sqlc.arg(numbers)::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.entry_id = ANY(sqlc.arg(entry_ids)::bigint[]) AND v.model_id = sqlc.arg(model_id)
ORDER BY v.embedding <#> sqlc.arg(numbers)::real[]::halfvec
LIMIT sqlc.arg(most)::integer;

-- name: NearestInEntries :many
-- Of the passages of some texts the nearest to a vector, by a model's HNSW index.
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest_in_entries(
    sqlc.arg(model_id)::integer,
    sqlc.arg(dimension)::integer,
    sqlc.arg(numbers)::real[],
    sqlc.arg(most)::integer,
    sqlc.arg(scanned)::integer,
    sqlc.arg(entry_ids)::bigint[]
);

-- name: NearestOfAll :many
-- Of all passages of a model the nearest to a vector, exactly.
SELECT v.chunk_id, (-(v.embedding <#> sqlc.arg(numbers)::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.model_id = sqlc.arg(model_id)
ORDER BY v.embedding <#> sqlc.arg(numbers)::real[]::halfvec
LIMIT sqlc.arg(most)::integer;

-- name: PlaceChunks :many
-- Which texts passages are of, and what tells the same from others.
SELECT c.id AS chunk_id, c.entry_id, c.hash, e.content_hash, e.uri
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: ShowChunks :many
-- Passages with what people are shown of them.
SELECT
    c.id AS chunk_id, c.entry_id, c.source_id, c.ordinal, c.starts_at, c.ends_at, c.headings, c.words,
    c.tokens, c.hash, e.uri, e.path, e.title, e.language, e.content_type, e.page_id, e.version_id,
    e.content_hash, e.dated_at, s.name AS source_name, s.kind AS source_kind, s.site_id, s.application_id
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
INNER JOIN knowledge.source AS s ON c.source_id = s.id
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: PassageTexts :many
-- All that is written in and above passages.
SELECT c.id AS chunk_id, c.headings, c.words, e.title, e.language
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY(sqlc.arg(chunk_ids)::bigint[]);

-- name: FindEntries :many
-- The searched texts that a page, a URI or an id means.
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
-- The mean of the vectors of texts, for each model that they have vectors of.
SELECT v.model_id, avg(v.embedding)::real[] AS "numbers!"
FROM knowledge.vector AS v
WHERE v.entry_id = ANY(sqlc.arg(entry_ids)::bigint[])
GROUP BY v.model_id;

-- name: SimilarTerms :many
-- Terms that are written much like a word, and in how many texts they are.
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

-- name: CrowdedModels :many
-- Models with many vectors and no index, and how many they are about.
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

-- name: ForsakenIndexes :many
-- HNSW indexes whose model is gone or has hardly any vectors left, and such as were not finished.
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
