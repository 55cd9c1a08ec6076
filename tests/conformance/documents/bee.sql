-- name: connections
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database();

-- name: connections by state
SELECT state, count(*)
FROM pg_stat_activity
WHERE datname = current_database()
GROUP BY state;

-- name: worker efficiency
SELECT
    status,
    COUNT(*) as count,
    AVG(EXTRACT(EPOCH FROM (completed_at - started_at))) as avg_duration
FROM tasks
WHERE started_at > NOW() - INTERVAL '1 hour'
GROUP BY status;

-- name: completion rates
SELECT
    DATE_TRUNC('hour', created_at) as hour,
    COUNT(*) as jobs_created,
    COUNT(completed_at) as jobs_completed
FROM jobs
WHERE created_at > NOW() - INTERVAL '24 hours'
GROUP BY hour
ORDER BY hour;

-- name: count of jobs
SELECT COUNT(*) FROM jobs;

-- name: count of tasks
SELECT COUNT(*) FROM tasks;

-- name: count of users
SELECT COUNT(*) FROM users;

-- name: top statements
select * from observability.pg_stat_statements_top_total_time limit 20;

-- name: reset of statistics
select pg_stat_statements_reset();

-- name: table statistics
SELECT
    schemaname,
    tablename,
    seq_scan,
    seq_tup_read,
    idx_scan,
    idx_tup_fetch
FROM pg_stat_user_tables
WHERE schemaname = 'public';

-- name: claim of a task
SELECT t.id, t.job_id, d.name as domain, p.path, t.source_type, t.source_url
FROM tasks t
JOIN pages p ON t.page_id = p.id
JOIN domains d ON p.domain_id = d.id
WHERE t.job_id = ANY($1)
  AND t.status = 'pending'
ORDER BY t.created_at ASC
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: claim by priority
SELECT ... FROM tasks
WHERE status = 'pending' AND job_id = $1
ORDER BY priority_score DESC, created_at ASC
LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: job listing
SELECT ... FROM jobs
WHERE organisation_id = $1
  AND status = $2  -- optional
  AND created_at >= $3  -- optional
ORDER BY created_at DESC;
