-- name: PagesOfOrganisation :many
-- Ids of an organisation's pages after one, in the order of first sight.
SELECT p.id AS page_id
FROM store.page p
WHERE p.organisation_id = sqlc.arg(organisation_id) AND p.id > sqlc.arg(after)::uuid
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.id
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfOrganisationNewest :many
-- As PagesOfOrganisation, before one, newest first.
SELECT p.id AS page_id
FROM store.page p
WHERE p.organisation_id = sqlc.arg(organisation_id) AND p.id < sqlc.arg(before)::uuid
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.id DESC
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfOrganisationChanged :many
-- As PagesOfOrganisation, before a key, latest change first.
SELECT p.id AS page_id
FROM store.page p
WHERE p.organisation_id = sqlc.arg(organisation_id)
    AND ((CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END), p.id)
        < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before)::uuid)
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY (CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END) DESC, p.id DESC
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfSite :many
-- Ids of a site's pages after one, in the order of discovery.
SELECT p.id AS page_id
FROM store.page p
WHERE p.site_id = sqlc.arg(site_id) AND p.url_id > sqlc.arg(after)::bigint
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.url_id
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfSiteNewest :many
-- As PagesOfSite, before one, newest first.
SELECT p.id AS page_id
FROM store.page p
WHERE p.site_id = sqlc.arg(site_id) AND p.url_id < sqlc.arg(before)::bigint
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.url_id DESC
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfSiteChanged :many
-- As PagesOfSite, before a key, latest change first.
SELECT p.id AS page_id
FROM store.page p
WHERE p.site_id = sqlc.arg(site_id)
    AND ((CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END), p.id)
        < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before)::uuid)
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY (CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END) DESC, p.id DESC
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfUrl :many
-- Ids of the pages of a URL, in all sites or in one.
SELECT p.id AS page_id
FROM frontier.url u
JOIN store.page p ON p.url_id = u.id
WHERE u.organisation_id = sqlc.arg(organisation_id) AND u.hash = sqlc.arg(url_hash)
    AND (sqlc.narg(site_id)::uuid IS NULL OR p.site_id = sqlc.narg(site_id))
    AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
    AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.first_seen_at <= sqlc.narg(seen_until))
    AND (sqlc.narg(gone)::boolean IS NULL OR (p.gone_at IS NOT NULL) = sqlc.narg(gone))
    AND (sqlc.narg(duplicate)::boolean IS NULL OR sqlc.narg(duplicate) = EXISTS (
        SELECT FROM store.likeness l
        JOIN store.likeness o ON o.site_id = l.site_id AND o.group_id = l.group_id
        WHERE l.page_id = p.id AND (o.by_hand, o.page_id) < (l.by_hand, l.page_id)
    ))
ORDER BY p.id;

-- name: PagesOfJob :many
-- Pages that a job saw after a task, in the order of tasks.
SELECT
    t.id AS task_id, p.id AS page_id, p.site_id, (d.result ->> 'url')::text AS "url!",
    (d.result ->> 'change')::text AS "change?", d.finished_at, v.id AS version_id, v.number,
    v.title, v.status, v.content_hash
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
JOIN store.page p ON p.id = v.page_id
WHERE t.job_id = sqlc.arg(job_id) AND t.id > sqlc.arg(after)::bigint
ORDER BY t.id
LIMIT sqlc.arg(most)::integer;

-- name: ShowPages :many
-- returns: PageRow
-- Pages with their latest versions.
SELECT
    p.id AS page_id, p.organisation_id, p.site_id, p.url_id, u.url::text AS "url!", u.hash AS "url_hash!",
    p.first_seen_at, p.last_seen_at, p.changed_at, p.gone_at, p.version_id, p.version_number,
    p.content_hash, v.title, v.status, v.language, v.page_type,
    l.similarity, coalesce(l.by_hand, false) AS "by_hand!", first.page_id AS "duplicate_of?"
FROM store.page p
JOIN frontier.url_text u ON u.id = p.url_id
LEFT JOIN store.version v ON v.id = p.version_id
LEFT JOIN store.likeness l ON l.page_id = p.id
LEFT JOIN LATERAL (
    SELECT o.page_id FROM store.likeness o
    WHERE o.site_id = l.site_id AND o.group_id = l.group_id
    ORDER BY o.by_hand, o.page_id LIMIT 1
) first ON first.page_id <> p.id
WHERE p.id = ANY (sqlc.arg(page_ids)::uuid[]);

-- name: ListVersions :many
-- Versions of a page before a number, newest first, without content.
SELECT
    id AS version_id, number, visit_id, job_id, fetched_at, content_hash, extractor_version, status,
    title, language, page_type, length(text) AS "characters!", sha256
FROM store.version
WHERE page_id = sqlc.arg(page_id) AND number < sqlc.arg(before)::integer
ORDER BY number DESC
LIMIT sqlc.arg(most)::integer;

-- name: GetVersion :one
-- One version of a page by its number.
SELECT * FROM store.version WHERE page_id = sqlc.arg(page_id) AND number = sqlc.arg(number);

-- name: VersionAt :one
-- The version of a page that was current at a time.
SELECT * FROM store.version
WHERE page_id = sqlc.arg(page_id) AND fetched_at <= sqlc.arg(at)::timestamptz
ORDER BY number DESC LIMIT 1;

-- name: VersionById :one
-- One version by its id.
SELECT * FROM store.version WHERE id = sqlc.arg(version_id);

-- name: DocumentsOf :many
-- The documents of pages: the files that they link to, and their own bytes.
SELECT
    v.number, v.fetched_at, v.sha256 AS "sha256!", b.size, b.place,
    m.name AS "media_type?"
FROM store.version v
JOIN store.blob b ON b.sha256 = v.sha256
LEFT JOIN archive.file f ON f.visit_id = v.visit_id AND f.sha256 = v.sha256
LEFT JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE v.page_id = sqlc.arg(page_id)
ORDER BY v.number DESC
LIMIT sqlc.arg(most)::integer;
