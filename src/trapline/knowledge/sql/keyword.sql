-- name: AddSegment :one
-- Insert a segment of the keyword index.
INSERT INTO knowledge.segment (
    organisation_id, language, analysis_version, texts, length, chunk_ids, entry_ids
)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(language), sqlc.arg(analysis_version), sqlc.arg(texts),
    sqlc.arg(length), sqlc.arg(chunk_ids), sqlc.arg(entry_ids)
)
RETURNING id AS segment_id;

-- name: AddPostings :exec
-- Insert parts of postings.
INSERT INTO knowledge.posting (
    organisation_id, segment_id, term, part, texts, most, shortest, starts, postings
)
SELECT sqlc.arg(organisation_id), sqlc.arg(segment_id), term, part, texts, most, shortest, starts, postings
FROM unnest(
    sqlc.arg(terms)::text[],
    sqlc.arg(parts)::integer[],
    sqlc.arg(texts)::integer[],
    sqlc.arg(mosts)::smallint[],
    sqlc.arg(shortests)::smallint[],
    sqlc.narg(starts)::bytea[],
    sqlc.arg(postings)::bytea[]
) AS new (term, part, texts, most, shortest, starts, postings);

-- name: ListSegments :many
-- The segments of an organisation.
SELECT id AS segment_id, language, texts, length
FROM knowledge.segment
WHERE organisation_id = sqlc.arg(organisation_id) AND analysis_version = sqlc.arg(analysis_version)
ORDER BY id;

-- name: MainLanguage :one
-- The language of most indexed texts of an organisation.
SELECT language FROM knowledge.segment
WHERE organisation_id = sqlc.arg(organisation_id) AND language <> 'xx'
GROUP BY language
ORDER BY sum(texts) DESC, language
LIMIT 1;

-- name: CountSegments :one
-- How many of these segments still exist.
SELECT count(*) FROM knowledge.segment WHERE id = ANY(sqlc.arg(segment_ids)::bigint[]);

-- name: SegmentChunks :many
-- The chunk and entry of each ordinal of segments.
SELECT id AS segment_id, chunk_ids, entry_ids FROM knowledge.segment WHERE id = ANY(sqlc.arg(segment_ids)::bigint[]);

-- name: PostingHeads :many
-- The first part of each term's postings in each segment.
SELECT segment_id, term, texts, most, shortest, starts, postings
FROM knowledge.posting
WHERE
    segment_id = ANY(sqlc.arg(segment_ids)::bigint[])
    AND term = ANY(sqlc.arg(terms)::text[])
    AND part = 0;

-- name: PostingParts :many
-- Further parts of postings, in order.
SELECT p.segment_id, p.term, p.postings
FROM unnest(
    sqlc.arg(segment_ids)::bigint[], sqlc.arg(terms)::text[], sqlc.arg(parts)::integer[]
) AS wanted (segment_id, term, part)
INNER JOIN knowledge.posting AS p
    ON wanted.segment_id = p.segment_id AND wanted.term = p.term AND wanted.part = p.part
ORDER BY p.segment_id, p.term, p.part;

-- name: MergeableSegments :many
-- Groups of many segments of similar size in one organisation and language.
SELECT
    organisation_id,
    language,
    array_agg(id ORDER BY id) AS segment_ids
FROM knowledge.segment
WHERE analysis_version = sqlc.arg(analysis_version) AND texts < sqlc.arg(largest)::integer
GROUP BY organisation_id, language, floor(log(8, greatest(texts, 8)))
HAVING count(*) >= sqlc.arg(many)::integer
ORDER BY count(*) DESC
LIMIT sqlc.arg(most);

-- name: SegmentsAfter :many
-- The next segments of all organisations, with their chunks.
SELECT id AS segment_id, organisation_id, language, chunk_ids
FROM knowledge.segment
WHERE id > sqlc.arg(after)::bigint
ORDER BY id
LIMIT sqlc.arg(most);

-- name: LockSegments :many
-- Lock segments to merge; those that another merge has locked are not returned.
SELECT id AS segment_id, texts, length, chunk_ids, entry_ids
FROM knowledge.segment
WHERE id = ANY(sqlc.arg(segment_ids)::bigint[])
ORDER BY id
FOR UPDATE SKIP LOCKED;

-- name: MissingChunks :many
-- Those of these chunks that were deleted.
SELECT wanted.id::bigint AS "id!"
FROM unnest(sqlc.arg(chunk_ids)::bigint[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM knowledge.chunk AS c WHERE c.id = wanted.id);

-- name: PostingsAfter :many
-- The postings of segments, in order of term, segment and part; a page of them.
SELECT term, segment_id, part, postings
FROM knowledge.posting
WHERE
    segment_id = ANY(sqlc.arg(segment_ids)::bigint[])
    AND term > sqlc.arg(after)::text
    AND term <= sqlc.arg(until)::text
ORDER BY term, segment_id, part;

-- name: TermsAfter :many
-- The next terms of segments, so that their postings can be read a page at a time.
SELECT DISTINCT term FROM knowledge.posting
WHERE segment_id = ANY(sqlc.arg(segment_ids)::bigint[]) AND part = 0 AND term > sqlc.arg(after)::text
ORDER BY term
LIMIT sqlc.arg(most);

-- name: DropSegments :exec
-- Delete segments with their postings.
DELETE FROM knowledge.segment WHERE id = ANY(sqlc.arg(segment_ids)::bigint[]);
