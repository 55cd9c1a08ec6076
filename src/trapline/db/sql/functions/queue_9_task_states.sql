-- The state of every task, with its job: the compatibility views read this view.
-- The state is a constant of each branch, and each branch has its own joins: so a query about one state
-- reads only its tables, and one about a time or a job begins at its index. The join with the job is an
-- outer one, so that a query that does not read the job does not pay for it.
CREATE OR REPLACE VIEW queue.place WITH (security_invoker = true) AS
SELECT
    'completed' AS state,
    t AS task,
    j AS job,
    d.attempts::integer AS attempts,
    d.stalls::integer AS stalls,
    d.started_at,
    d.finished_at,
    d.error,
    d.result,
    -- Of running tasks: the lease, and the last heartbeat of the agent.
    NULL::bigint AS lease_id,
    NULL::timestamptz AS heartbeat_at,
    -- Of queued tasks: the deadline, and whether the job or organisation is at its concurrency limit.
    NULL::timestamptz AS deadline,
    false AS held
FROM queue.done d JOIN queue.task t ON t.id = d.task_id LEFT JOIN queue.job j ON j.id = t.job_id
WHERE d.status = 0
UNION ALL
SELECT 'failed', t, j, d.attempts, d.stalls, d.started_at, d.finished_at, d.error, d.result,
    NULL, NULL, NULL, false
FROM queue.done d JOIN queue.task t ON t.id = d.task_id LEFT JOIN queue.job j ON j.id = t.job_id
WHERE d.status = 1
UNION ALL
SELECT 'skipped', t, j, d.attempts, d.stalls, d.started_at, d.finished_at,
    coalesce(d.error, CASE d.status WHEN 2 THEN 'skipped' ELSE 'cancelled' END), d.result,
    NULL, NULL, NULL, false
FROM queue.done d JOIN queue.task t ON t.id = d.task_id LEFT JOIN queue.job j ON j.id = t.job_id
WHERE d.status IN (2, 3)
UNION ALL
SELECT 'running', t, j, r.attempts, r.stalls, e.claimed_at, NULL, NULL, NULL,
    e.id, greatest(a.heartbeat_at, e.claimed_at), NULL, false
FROM queue.leased r
JOIN queue.lease e ON e.id = r.lease_id LEFT JOIN queue.agent a ON a.id = e.agent_id
JOIN queue.task t ON t.id = r.task_id LEFT JOIN queue.job j ON j.id = t.job_id
UNION ALL
-- A job's queued tasks are found by its lanes.
SELECT 'queued', t, j, r.attempts, r.stalls, NULL, NULL, NULL, NULL, NULL, NULL, r.deadline,
    coalesce(j.active >= j.max_active, false) OR EXISTS (
        SELECT FROM queue.quota q JOIN tenancy.organisation o ON o.id = q.organisation_id
        WHERE q.organisation_id = t.organisation_id AND q.active >= o.max_concurrency)
FROM queue.ready r
JOIN queue.lane l ON l.id = r.lane_id JOIN queue.job j ON j.id = l.job_id
JOIN queue.task t ON t.id = r.task_id AND t.job_id = l.job_id
WHERE j.status IN ('pending', 'running', 'paused')
UNION ALL
SELECT 'queued', t, j, r.attempts, r.stalls, NULL, NULL, NULL, NULL, NULL, NULL, r.deadline,
    coalesce(j.active >= j.max_active, false) OR EXISTS (
        SELECT FROM queue.quota q JOIN tenancy.organisation o ON o.id = q.organisation_id
        WHERE q.organisation_id = t.organisation_id AND q.active >= o.max_concurrency)
FROM queue.waiting r
JOIN queue.lane l ON l.id = r.lane_id JOIN queue.job j ON j.id = l.job_id
JOIN queue.task t ON t.id = r.task_id AND t.job_id = l.job_id
WHERE j.status IN ('pending', 'running', 'paused');

GRANT SELECT ON queue.place TO trapline_worker, trapline_tenant;
