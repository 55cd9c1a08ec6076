-- name: Fence :many
-- End the leases of attempts; return those that still held.
SELECT task_id AS "task_id!", lane_id AS "lane_id!", job_id AS "job_id!",
       organisation_id AS "organisation_id!", gate_id AS "gate_id!", priority AS "priority!",
       attempts AS "attempts!", stalls AS "stalls!", slots AS "slots!", agent_id AS "agent_id!",
       claimed_at AS "claimed_at!"
FROM queue.fence(sqlc.arg(outcomes)::queue.verdict[], false);

-- name: Settle :one
-- Apply fenced attempts to counters, slots, gates and tasks; return the jobs with new events.
SELECT queue.settle(
    sqlc.arg(attempts)::queue.ending[],
    sqlc.arg(tasks)::queue.new_task[],
    sqlc.arg(gates)::queue.new_gate[],
    sqlc.arg(events)::queue.new_event[],
    sqlc.arg(changes)::queue.gate_change[],
    sqlc.arg(most_stalls)::integer
) AS "news!";

-- name: Finish :one
-- Fence and settle attempts that store nothing; return the jobs with new events.
SELECT queue.finish(
    sqlc.arg(outcomes)::queue.verdict[],
    sqlc.arg(lost)::boolean,
    sqlc.arg(most_stalls)::integer
) AS "news!";

-- name: EndedTasks :many
-- The outcomes of those of these tasks that have ended.
SELECT task_id, status FROM queue.done WHERE task_id = ANY (sqlc.arg(task_ids)::bigint[]);
