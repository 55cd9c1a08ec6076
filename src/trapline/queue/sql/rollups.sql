-- name: RollUpJobLog :execrows
-- Count the log lines of days by step and level.
INSERT INTO queue.job_log_day AS d (organisation_id, day, step, level, lines)
SELECT organisation_id, (created_at AT TIME ZONE 'UTC')::date, step, level, count(*)
FROM queue.job_log
WHERE created_at >= sqlc.arg(since)::timestamptz AND created_at < sqlc.arg(until)::timestamptz
GROUP BY 1, 2, 3, 4
ON CONFLICT (organisation_id, day, step, level) DO UPDATE SET lines = d.lines + excluded.lines;

-- name: RollUpStatistics :execrows
-- Sum the minutes of days by kind.
INSERT INTO queue.statistic_day AS d
    (day, kind, completed, failed, skipped, retried, stalled, seconds)
SELECT (minute AT TIME ZONE 'UTC')::date, kind, sum(completed), sum(failed), sum(skipped),
       sum(retried), sum(stalled), sum(seconds)
FROM queue.statistic
WHERE minute >= sqlc.arg(since)::timestamptz AND minute < sqlc.arg(until)::timestamptz
GROUP BY 1, 2
ON CONFLICT (day, kind) DO UPDATE
SET completed = d.completed + excluded.completed, failed = d.failed + excluded.failed,
    skipped = d.skipped + excluded.skipped, retried = d.retried + excluded.retried,
    stalled = d.stalled + excluded.stalled, seconds = d.seconds + excluded.seconds;
