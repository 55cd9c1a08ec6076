-- name: AddChanges :exec
-- Insert change events.
INSERT INTO store.change (
    organisation_id, site_id, page_id, url_id, status, source, detected_at, version_id,
    previous_version_id, job_id, added_lines, removed_lines, added_words, removed_words
)
SELECT *
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(page_ids)::uuid[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(statuses)::text[],
    sqlc.arg(sources)::text[],
    sqlc.arg(detected_ats)::timestamptz[],
    sqlc.narg(version_ids)::bigint[],
    sqlc.narg(previous_version_ids)::bigint[],
    sqlc.narg(job_ids)::uuid[],
    sqlc.narg(added_lines)::integer[],
    sqlc.narg(removed_lines)::integer[],
    sqlc.narg(added_words)::integer[],
    sqlc.narg(removed_words)::integer[]
);

-- name: AddReport :one
-- Insert a report of changedetection.io; no row if it exists already.
INSERT INTO store.change (
    organisation_id, status, source, detected_at, watch_id, watch_url, diff_summary, snapshot_url,
    report, rescrape_job_id, rescrape_status, metadata
) VALUES (
    sqlc.arg(organisation_id), 'changed', 'changedetection', sqlc.arg(detected_at),
    sqlc.arg(watch_id)::text, sqlc.arg(watch_url)::text, sqlc.narg(diff_summary),
    sqlc.narg(snapshot_url), sqlc.arg(report)::bytea, sqlc.arg(rescrape_job_id)::uuid, 'queued',
    sqlc.arg(metadata)
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: FindReport :one
-- The change event of an earlier, identical report.
SELECT id, rescrape_job_id, rescrape_status FROM store.change
WHERE organisation_id = sqlc.arg(organisation_id) AND report = sqlc.arg(report)::bytea;

-- name: SettleReports :execrows
-- Record the result of the rescrape of reported pages, and which page it was.
UPDATE store.change c
SET rescrape_status = ended.status,
    indexed_at = ended.indexed_at,
    site_id = coalesce(c.site_id, ended.site_id),
    page_id = coalesce(c.page_id, ended.page_id),
    url_id = coalesce(c.url_id, ended.url_id),
    version_id = coalesce(c.version_id, ended.version_id)
FROM unnest(
    sqlc.arg(job_ids)::uuid[], sqlc.arg(statuses)::text[], sqlc.narg(indexed_ats)::timestamptz[],
    sqlc.narg(site_ids)::uuid[], sqlc.narg(page_ids)::uuid[], sqlc.narg(url_ids)::bigint[],
    sqlc.narg(version_ids)::bigint[]
) AS ended (job_id, status, indexed_at, site_id, page_id, url_id, version_id)
WHERE c.rescrape_job_id = ended.job_id AND c.rescrape_status = 'queued';

-- name: AwaitedReports :many
-- Which of these jobs are rescrapes of reported pages.
SELECT DISTINCT rescrape_job_id AS "job_id!" FROM store.change
WHERE rescrape_job_id = ANY (sqlc.arg(job_ids)::uuid[]) AND rescrape_status = 'queued';

-- name: LastSweep :one
-- The last complete crawl of an organisation's site with this plan.
SELECT * FROM store.sweep
WHERE organisation_id = sqlc.arg(organisation_id) AND site_id = sqlc.arg(site_id)
    AND plan = sqlc.arg(plan);

-- name: RecordSweep :exec
-- Record a complete crawl of a site.
INSERT INTO store.sweep AS s (site_id, plan, organisation_id, job_id, started_at)
VALUES (
    sqlc.arg(site_id), sqlc.arg(plan), sqlc.arg(organisation_id), sqlc.arg(job_id),
    sqlc.arg(started_at)
)
ON CONFLICT (site_id, plan) DO UPDATE SET job_id = excluded.job_id, started_at = excluded.started_at
WHERE s.started_at < excluded.started_at;
