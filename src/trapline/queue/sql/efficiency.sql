-- name: EfficiencySince :many
-- What tasks of each kind came to, and how long one took on average.
SELECT kind, sum(completed)::bigint AS "completed!", sum(failed)::bigint AS "failed!",
    sum(skipped)::bigint AS "skipped!", sum(retried)::bigint AS "retried!",
    sum(stalled)::bigint AS "stalled!",
    coalesce(sum(seconds) / nullif(sum(completed + failed + skipped + retried), 0), 0)
        ::double precision AS "mean_seconds!"
FROM queue.statistic WHERE minute >= sqlc.arg(since)::timestamptz
GROUP BY kind ORDER BY kind;

-- name: RatesSince :many
-- How many jobs were made in each hour, and how many of those have ended.
SELECT hour, sum(jobs)::bigint AS "created!",
    (sum(jobs) FILTER (WHERE status IN ('completed', 'failed', 'cancelled')))::bigint AS "ended?"
FROM queue.job_tally WHERE hour >= sqlc.arg(since)::timestamptz
GROUP BY hour HAVING sum(jobs) > 0 ORDER BY hour;
