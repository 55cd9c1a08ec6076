-- name: ListChanges :many
-- returns: ChangeRow
-- Change events of an organisation before an id, newest first.
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.organisation_id = sqlc.arg(organisation_id)
    AND c.id < sqlc.arg(before)::bigint
    AND (sqlc.narg(status)::text IS NULL OR c.status = sqlc.narg(status))
    AND (sqlc.narg(source)::text IS NULL OR c.source = sqlc.narg(source))
    AND (sqlc.narg(job_id)::uuid IS NULL OR c.job_id = sqlc.narg(job_id))
    AND (sqlc.narg(since)::timestamptz IS NULL OR c.detected_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR c.detected_at <= sqlc.narg(until))
ORDER BY c.id DESC
LIMIT sqlc.arg(most)::integer;

-- name: ListSiteChanges :many
-- returns: ChangeRow
-- As ListChanges, of one site or of one of its pages.
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.site_id = sqlc.arg(site_id)
    AND c.id < sqlc.arg(before)::bigint
    AND (sqlc.narg(page_id)::uuid IS NULL OR c.page_id = sqlc.narg(page_id))
    AND (sqlc.narg(status)::text IS NULL OR c.status = sqlc.narg(status))
    AND (sqlc.narg(source)::text IS NULL OR c.source = sqlc.narg(source))
    AND (sqlc.narg(job_id)::uuid IS NULL OR c.job_id = sqlc.narg(job_id))
    AND (sqlc.narg(since)::timestamptz IS NULL OR c.detected_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR c.detected_at <= sqlc.narg(until))
ORDER BY c.id DESC
LIMIT sqlc.arg(most)::integer;

-- name: ListChangesOldest :many
-- returns: ChangeRow
-- As ListChanges, after an id, oldest first.
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.organisation_id = sqlc.arg(organisation_id)
    AND c.id > sqlc.arg(after)::bigint
    AND (sqlc.narg(status)::text IS NULL OR c.status = sqlc.narg(status))
    AND (sqlc.narg(source)::text IS NULL OR c.source = sqlc.narg(source))
    AND (sqlc.narg(job_id)::uuid IS NULL OR c.job_id = sqlc.narg(job_id))
    AND (sqlc.narg(since)::timestamptz IS NULL OR c.detected_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR c.detected_at <= sqlc.narg(until))
ORDER BY c.id
LIMIT sqlc.arg(most)::integer;

-- name: ListSiteChangesOldest :many
-- returns: ChangeRow
-- As ListSiteChanges, after an id, oldest first.
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.site_id = sqlc.arg(site_id)
    AND c.id > sqlc.arg(after)::bigint
    AND (sqlc.narg(page_id)::uuid IS NULL OR c.page_id = sqlc.narg(page_id))
    AND (sqlc.narg(status)::text IS NULL OR c.status = sqlc.narg(status))
    AND (sqlc.narg(source)::text IS NULL OR c.source = sqlc.narg(source))
    AND (sqlc.narg(job_id)::uuid IS NULL OR c.job_id = sqlc.narg(job_id))
    AND (sqlc.narg(since)::timestamptz IS NULL OR c.detected_at >= sqlc.narg(since))
    AND (sqlc.narg(until)::timestamptz IS NULL OR c.detected_at <= sqlc.narg(until))
ORDER BY c.id
LIMIT sqlc.arg(most)::integer;

-- name: GetChange :one
-- returns: ChangeRow
-- One change event.
SELECT
    c.id, c.site_id, c.page_id, coalesce(u.url::text, c.watch_url) AS "url!", c.status, c.source,
    c.detected_at, c.version_id, c.previous_version_id, c.job_id, c.added_lines, c.removed_lines,
    c.added_words, c.removed_words, c.watch_id, c.diff_summary, c.snapshot_url, c.rescrape_job_id,
    c.rescrape_status, c.indexed_at, c.metadata, v.title, v.number AS "version_number?"
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
LEFT JOIN store.version v ON v.id = c.version_id
WHERE c.id = sqlc.arg(change_id);

-- name: UnseenPages :many
-- Pages of an organisation that an earlier crawl saw and this one did not, and that no response marked
-- as gone.
SELECT DISTINCT p.site_id, p.url_id, u.url::text AS "url!"
FROM archive.visit before
JOIN store.page p ON p.site_id = before.site_id AND p.url_id = before.url_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE before.job_id = sqlc.arg(earlier_job_id)
    AND before.site_id = sqlc.arg(site_id)
    AND p.organisation_id = sqlc.arg(organisation_id)
    AND p.gone_at IS NULL AND p.version_id IS NOT NULL
    AND p.last_seen_at < sqlc.arg(started_at)::timestamptz
    AND NOT EXISTS (
        SELECT FROM archive.visit now
        WHERE now.job_id = sqlc.arg(job_id) AND now.url_id = p.url_id
    );

-- name: SitesOfJob :many
-- The sites that a job visited.
SELECT DISTINCT site_id FROM archive.visit WHERE job_id = sqlc.arg(job_id);

-- name: CountBlockingFailures :one
-- Number of tasks of a crawl whose failure may have hidden pages from it.
SELECT count(*) AS "failed!"
FROM queue.dead_letter d
JOIN queue.task t ON t.id = d.task_id
LEFT JOIN queue.done o ON o.task_id = d.task_id
WHERE d.job_id = sqlc.arg(job_id)
    AND NOT coalesce(o.code, 0) = ANY (sqlc.arg(harmless)::smallint[])
    AND (
        t.kind <> sqlc.arg(page_kind)
        OR coalesce(o.code, 0) = ANY (sqlc.arg(passing)::smallint[])
        OR EXISTS (
            SELECT FROM archive.visit v
            JOIN store.page p ON p.site_id = v.site_id AND p.url_id = v.url_id
            WHERE v.job_id = d.job_id AND v.task_id = d.task_id AND p.version_id IS NOT NULL
        )
    );

-- name: FirstPageOfJob :one
-- The page of a job that visits one page.
SELECT p.site_id, p.id AS page_id, p.url_id, p.version_id
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN store.page p ON p.id = (d.result ->> 'page_id')::uuid
WHERE t.job_id = sqlc.arg(job_id)
ORDER BY t.id LIMIT 1;

-- name: WasUnlinked :one
-- Whether the last complete crawl did not find the page of a URL.
SELECT EXISTS (
    SELECT FROM frontier.url u
    JOIN store.page p ON p.url_id = u.id
    JOIN store.change c ON c.page_id = p.id
    WHERE u.organisation_id = sqlc.arg(organisation_id) AND u.hash = sqlc.arg(url_hash)
        AND c.source = 'sweep' AND c.status = 'removed'
        AND c.detected_at >= coalesce(p.returned_at, p.gone_at)
) AS "unlinked!";
