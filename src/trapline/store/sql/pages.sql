-- name: SeePages :many
-- Note pages as seen now; what comes back is what their latest version was before.
INSERT INTO store.page AS p (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
SELECT id, organisation_id, site_id, url_id, seen_at, seen_at
FROM unnest(
    sqlc.arg(ids)::uuid[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(seen_ats)::timestamptz[]
) AS new (id, organisation_id, site_id, url_id, seen_at)
ORDER BY site_id, url_id
ON CONFLICT (site_id, url_id) DO UPDATE SET
    last_seen_at = greatest(p.last_seen_at, excluded.last_seen_at),
    returned_at = CASE WHEN p.gone_at IS NULL THEN p.returned_at ELSE excluded.last_seen_at END,
    gone_at = NULL
RETURNING
    id AS page_id, site_id, url_id, version_id, version_number, content_hash, extractor_version,
    returned_at;

-- name: AddVersions :many
-- Write new versions and make each the latest of its page.
WITH added AS (
    INSERT INTO store.version (
        organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown, metadata, links,
        warning, sha256
    )
    SELECT
        organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown,
        metadata::jsonb, links::jsonb, warning, sha256
    FROM unnest(
        sqlc.arg(organisation_ids)::uuid[],
        sqlc.arg(page_ids)::uuid[],
        sqlc.arg(numbers)::integer[],
        sqlc.arg(visit_ids)::bigint[],
        sqlc.narg(job_ids)::uuid[],
        sqlc.arg(fetched_ats)::timestamptz[],
        sqlc.arg(content_hashes)::bytea[],
        sqlc.arg(extractor_versions)::smallint[],
        sqlc.narg(statuses)::smallint[],
        sqlc.narg(content_types)::text[],
        sqlc.narg(titles)::text[],
        sqlc.narg(languages)::text[],
        sqlc.narg(page_types)::text[],
        sqlc.arg(texts)::text[],
        sqlc.arg(markdowns)::text[],
        sqlc.arg(metadatas)::text[],
        sqlc.arg(links)::text[],
        sqlc.narg(warnings)::text[],
        sqlc.narg(sha256s)::bytea[]
    ) AS new (
        organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown, metadata, links,
        warning, sha256
    )
    RETURNING id, page_id, number, content_hash, extractor_version, fetched_at
),
latest AS (
    UPDATE store.page p
    SET version_id = added.id,
        version_number = added.number,
        content_hash = added.content_hash,
        extractor_version = added.extractor_version,
        changed_at = added.fetched_at
    FROM added
    WHERE p.id = added.page_id
)
SELECT id AS version_id, page_id, number FROM added;

-- name: PagesGone :many
-- Note pages that are gone; those come back that were there until now.
UPDATE store.page p
SET gone_at = gone.at
FROM (
    SELECT p.id, new.at
    FROM unnest(sqlc.arg(site_ids)::uuid[], sqlc.arg(url_ids)::bigint[], sqlc.arg(ats)::timestamptz[])
        AS new (site_id, url_id, at)
    JOIN store.page p USING (site_id, url_id)
    WHERE p.gone_at IS NULL AND p.version_id IS NOT NULL
    ORDER BY new.site_id, new.url_id
    FOR NO KEY UPDATE OF p
) AS gone
WHERE p.id = gone.id
RETURNING p.id AS page_id, p.organisation_id, p.site_id, p.url_id, p.version_id, gone.at;
