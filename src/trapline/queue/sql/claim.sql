-- name: FinishAndClaim :many
-- Finish attempts and claim tasks, in one round trip.
SELECT * FROM queue.finish_and_claim(
    sqlc.arg(leases)::bigint[],
    sqlc.arg(tasks)::bigint[],
    sqlc.arg(results)::text[],
    sqlc.arg(outcomes)::queue.verdict[],
    sqlc.arg(most_stalls)::integer,
    sqlc.arg(agent_id)::bigint,
    sqlc.arg(requests)::queue.want[],
    sqlc.arg(starting)::uuid[],
    sqlc.arg(lease_time)::interval
);

-- name: ServedLanes :many
-- The lanes that a worker may claim from: the best of each organisation.
WITH RECURSIVE organisations AS (
    (SELECT l.organisation_id AS id FROM queue.lane l WHERE l.open AND l.awake
     ORDER BY l.organisation_id LIMIT 1)
    UNION ALL
    SELECT (SELECT l.organisation_id FROM queue.lane l
            WHERE l.open AND l.awake AND l.organisation_id > o.id
            ORDER BY l.organisation_id LIMIT 1)
    FROM organisations o WHERE o.id IS NOT NULL
)
SELECT l.id, l.organisation_id AS "organisation_id!", l.job_id AS "job_id!", l.gate_id, l.priority,
       (g.gap > interval '0' OR g.floor > interval '0' OR g.bound IS NOT NULL
        OR l.gap > interval '0' OR l.bound IS NOT NULL OR j.max_active IS NOT NULL
        OR t.max_concurrency IS NOT NULL OR t.max_pages_per_day IS NOT NULL) IS TRUE AS "limited!",
       g.ready_at, j.status = 'pending' AS "pending!",
       j.zero_data_retention AS "zero_data_retention!"
FROM organisations o
JOIN tenancy.organisation t ON t.id = o.id
CROSS JOIN LATERAL (
    SELECT * FROM queue.lane l
    WHERE l.organisation_id = o.id AND l.open AND l.awake
    ORDER BY l.priority, l.id LIMIT sqlc.arg(most_per_organisation)::integer
) l
CROSS JOIN LATERAL (SELECT * FROM queue.gate g WHERE g.id = l.gate_id OFFSET 0) g
CROSS JOIN LATERAL (
    SELECT j.max_active, j.status, j.zero_data_retention FROM queue.job j
    WHERE j.id = l.job_id OFFSET 0
) j;

-- name: Promote :one
-- Make due waiting tasks ready; return when the next one is due.
SELECT promoted AS "promoted!", next_at FROM queue.promote(sqlc.arg(most)::integer);

-- name: StatesOfJobs :many
-- The states of those of these jobs whose tasks must not run.
SELECT id, status FROM queue.job
WHERE id = ANY (sqlc.arg(jobs)::uuid[]) AND status IN ('paused', 'cancelled', 'completed', 'failed');
