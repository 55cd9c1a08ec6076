-- name: LockGrouping :exec
-- Let one transaction at a time count and compare.
SELECT pg_advisory_xact_lock(sqlc.arg(key)::bigint);

-- name: TakeSightings :many
-- Delete and return sightings to count, with the content of each page.
WITH taken AS (
    DELETE FROM store.sighting WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM store.sighting s LIMIT sqlc.arg(most)::integer FOR UPDATE SKIP LOCKED
    )) RETURNING organisation_id, site_id, page_id, version_id, seen_at
)
SELECT t.organisation_id, t.site_id, t.page_id, t.version_id, t.seen_at, v.content_hash, v.title
FROM taken t
JOIN store.version v ON v.id = t.version_id
ORDER BY t.version_id;

-- name: CountContents :many
-- Count the occurrences of contents. A new one has no group yet.
INSERT INTO store.content_hash AS c (
    organisation_id, site_id, content_hash, first_seen_page_id, first_version_id, title,
    occurrence_count, created_at, last_seen_at
)
SELECT *
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(content_hashes)::bytea[],
    sqlc.arg(page_ids)::uuid[],
    sqlc.arg(version_ids)::bigint[],
    sqlc.narg(titles)::text[],
    sqlc.arg(counts)::bigint[],
    sqlc.arg(first_ats)::timestamptz[],
    sqlc.arg(last_ats)::timestamptz[]
)
ON CONFLICT (site_id, content_hash) DO UPDATE SET
    occurrence_count = c.occurrence_count + excluded.occurrence_count,
    last_seen_at = greatest(c.last_seen_at, excluded.last_seen_at)
RETURNING
    id AS content_id, organisation_id, site_id, content_hash, first_version_id, title, group_id,
    similarity, words;

-- name: TextsOf :many
-- The main texts of versions that still exist.
SELECT id AS version_id, text FROM store.version WHERE id = ANY (sqlc.arg(version_ids)::bigint[]);

-- name: ThresholdsOf :many
-- The duplicate thresholds of sites that set one.
SELECT id AS site_id, (config ->> 'duplicate_threshold')::smallint AS "threshold!"
FROM store.site
WHERE id = ANY (sqlc.arg(site_ids)::uuid[]) AND config ->> 'duplicate_threshold' IS NOT NULL;

-- name: SimilarContents :many
-- Contents that share a MinHash band with one of these, up to a maximum for each.
SELECT wanted.number AS "number!", near.content_id, near.signature, near.first_version_id,
    near.title, near.words
FROM unnest(sqlc.arg(numbers)::integer[], sqlc.arg(bands)::text[]) AS wanted (number, bands)
CROSS JOIN LATERAL (
    SELECT f.content_id, f.signature, c.first_version_id, c.title, c.words
    FROM store.fingerprint f
    JOIN store.content_hash c ON c.id = f.content_id
    WHERE f.bands && wanted.bands::bigint[] AND f.algorithm = sqlc.arg(algorithm)
    LIMIT sqlc.arg(most)::integer
) AS near;

-- name: GroupContents :exec
-- Set the groups of contents.
UPDATE store.content_hash c
SET group_id = found.group_id, similarity = found.similarity, words = found.words
FROM unnest(
    sqlc.arg(content_ids)::bigint[], sqlc.narg(group_ids)::bigint[],
    sqlc.narg(similarities)::smallint[], sqlc.arg(words)::integer[]
) AS found (id, group_id, similarity, words)
WHERE c.id = found.id;

-- name: AddFingerprints :exec
-- Insert the fingerprints of contents that lead a group.
INSERT INTO store.fingerprint (content_id, organisation_id, algorithm, signature, bands)
SELECT content_id, organisation_id, sqlc.arg(algorithm), signature, bands::bigint[]
FROM unnest(
    sqlc.arg(content_ids)::bigint[], sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(signatures)::bytea[], sqlc.arg(bands)::text[]
) AS new (content_id, organisation_id, signature, bands)
ON CONFLICT DO NOTHING;

-- name: AssignPages :exec
-- Set the groups of pages, except where a user decided.
INSERT INTO store.likeness AS l
    (page_id, organisation_id, site_id, version_id, content_id, group_id, similarity)
SELECT new.*
FROM unnest(
    sqlc.arg(page_ids)::uuid[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(version_ids)::bigint[],
    sqlc.arg(content_ids)::bigint[],
    sqlc.narg(group_ids)::bigint[],
    sqlc.narg(similarities)::smallint[]
) AS new (page_id, organisation_id, site_id, version_id, content_id, group_id, similarity)
-- A page that was purged since has no row.
JOIN store.page p ON p.id = new.page_id
ON CONFLICT (page_id) DO UPDATE SET
    version_id = excluded.version_id,
    content_id = excluded.content_id,
    group_id = CASE WHEN l.by_hand THEN l.group_id ELSE excluded.group_id END,
    similarity = CASE WHEN l.by_hand THEN l.similarity ELSE excluded.similarity END
WHERE l.version_id < excluded.version_id;

-- name: GetLikeness :one
-- The group of a page.
SELECT * FROM store.likeness WHERE page_id = sqlc.arg(page_id);

-- name: DecideLikeness :execrows
-- Set the group of a page, or none, by a user's decision.
UPDATE store.likeness
SET group_id = sqlc.narg(group_id), similarity = sqlc.narg(similarity), by_hand = sqlc.arg(by_hand)
WHERE page_id = sqlc.arg(page_id);

-- name: ClearDecision :execrows
-- Return a page to the group of its content.
UPDATE store.likeness l
SET group_id = c.group_id, similarity = c.similarity, by_hand = false
FROM store.content_hash c
WHERE l.page_id = sqlc.arg(page_id) AND l.by_hand AND c.id = l.content_id;

-- name: GetContent :one
-- The occurrences of a content in a site, and its first page.
SELECT * FROM store.content_hash
WHERE site_id = sqlc.arg(site_id) AND content_hash = sqlc.arg(content_hash);
