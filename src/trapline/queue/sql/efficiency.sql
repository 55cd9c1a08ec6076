-- name: EfficiencySince :many
-- Outcomes of tasks by kind, with their mean time.
SELECT kind, sum(completed)::bigint AS "completed!", sum(failed)::bigint AS "failed!",
    sum(skipped)::bigint AS "skipped!", sum(retried)::bigint AS "retried!",
    sum(stalled)::bigint AS "stalled!",
    coalesce(sum(seconds) / nullif(sum(completed + failed + skipped + retried), 0), 0)
        ::double precision AS "mean_seconds!"
FROM queue.statistic WHERE minute >= sqlc.arg(since)::timestamptz
GROUP BY kind ORDER BY kind;

-- name: RatesSince :many
-- Jobs created and ended, by hour of creation.
SELECT hour, sum(jobs)::bigint AS "created!",
    (sum(jobs) FILTER (WHERE status IN ('completed', 'failed', 'cancelled')))::bigint AS "ended?"
FROM queue.job_tally WHERE hour >= sqlc.arg(since)::timestamptz
GROUP BY hour HAVING sum(jobs) > 0 ORDER BY hour;
