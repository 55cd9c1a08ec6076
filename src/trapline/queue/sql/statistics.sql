-- name: CountJobs :many
-- An organisation's jobs by kind and status, created within whole hours.
SELECT kind, status, sum(jobs)::bigint AS "jobs!"
FROM queue.job_tally
WHERE organisation_id = sqlc.arg(organisation_id)
    AND hour >= sqlc.arg(since)::timestamptz AND hour < sqlc.arg(until)::timestamptz
GROUP BY kind, status HAVING sum(jobs) <> 0
ORDER BY kind, status;

-- name: JobsByHour :many
-- An organisation's jobs by hour of creation: all, and those that ended.
SELECT hour, sum(jobs)::bigint AS "created!",
       coalesce(sum(jobs) FILTER (WHERE status = 'completed'), 0)::bigint AS "completed!",
       coalesce(sum(jobs) FILTER (WHERE status = 'failed'), 0)::bigint AS "failed!",
       coalesce(sum(jobs) FILTER (WHERE status = 'cancelled'), 0)::bigint AS "cancelled!"
FROM queue.job_tally
WHERE organisation_id = sqlc.arg(organisation_id)
    AND hour >= sqlc.arg(since)::timestamptz AND hour < sqlc.arg(until)::timestamptz
GROUP BY hour HAVING sum(jobs) <> 0
ORDER BY hour;

-- name: MergeTally :one
-- Merge all additions for an hour, kind and status into one row.
WITH changed AS MATERIALIZED (
    SELECT DISTINCT t.organisation_id, t.hour, t.kind, t.status FROM (
        SELECT u.* FROM queue.job_tally u WHERE NOT u.folded ORDER BY u.id
        LIMIT sqlc.arg(most)::integer) t
),
gone AS (
    DELETE FROM queue.job_tally t USING changed c
    WHERE t.organisation_id = c.organisation_id AND t.hour = c.hour AND t.kind = c.kind
        AND t.status = c.status
    RETURNING t.*
),
kept AS (
    INSERT INTO queue.job_tally (organisation_id, hour, kind, status, jobs, folded)
    SELECT organisation_id, hour, kind, status, sum(jobs), true FROM gone
    GROUP BY 1, 2, 3, 4 HAVING sum(jobs) <> 0
)
SELECT count(*) FILTER (WHERE NOT folded) AS "rows!" FROM gone;

-- name: TallyDifferences :many
-- Organisations whose job counts differ from their jobs.
SELECT coalesce(t.organisation_id, j.organisation_id) AS "organisation_id!",
       coalesce(t.status, j.status) AS "status!", coalesce(t.jobs, 0) AS "tally!",
       coalesce(j.jobs, 0) AS "rows_say!"
FROM (
    SELECT organisation_id, status, sum(jobs)::bigint AS jobs FROM queue.job_tally
    GROUP BY 1, 2 HAVING sum(jobs) <> 0
) t
FULL JOIN (SELECT organisation_id, status, count(*) AS jobs FROM queue.job GROUP BY 1, 2) j
    ON j.organisation_id = t.organisation_id AND j.status = t.status
WHERE t.jobs IS DISTINCT FROM j.jobs
ORDER BY 1, 2;

-- name: ThroughputSince :many
-- The tasks of all organisations that ended in each minute.
SELECT minute, sum(completed)::bigint AS "completed!", sum(failed)::bigint AS "failed!",
       sum(skipped)::bigint AS "skipped!"
FROM queue.statistic WHERE minute >= sqlc.arg(since)::timestamptz
GROUP BY minute ORDER BY minute;
