-- name: RecordVisits :one
-- Write finished visits with their requests, redirects and files; their ids, in their order.
SELECT archive.record_visits(
    sqlc.arg(visits)::archive.new_visit[],
    sqlc.arg(requests)::archive.new_request[],
    sqlc.arg(redirects)::archive.new_redirect[],
    sqlc.arg(files)::archive.new_file[]
) AS "visit_ids!";

-- name: PurgeVisits :one
-- Delete some visits of a site that is no more, with all that they own.
WITH old AS (
    SELECT v.started_at, v.id FROM archive.visit v WHERE v.site_id = sqlc.arg(site_id)
    LIMIT sqlc.arg(most)::integer
),
requests AS (
    DELETE FROM archive.request r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
redirects AS (
    DELETE FROM archive.redirect r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
files AS (
    DELETE FROM archive.file f USING old
    WHERE f.started_at = old.started_at AND f.visit_id = old.id
),
gone AS (
    DELETE FROM archive.visit v USING old
    WHERE v.started_at = old.started_at AND v.id = old.id
    RETURNING v.id
)
SELECT count(*) AS visits FROM gone;
