-- name: Fence :many
-- Take the leases of these attempts away; only those that still held come back.
SELECT task_id AS "task_id!", lane_id AS "lane_id!", job_id AS "job_id!",
       organisation_id AS "organisation_id!", gate_id AS "gate_id!", priority AS "priority!",
       attempts AS "attempts!", stalls AS "stalls!", slots AS "slots!", agent_id AS "agent_id!",
       claimed_at AS "claimed_at!"
FROM queue.fence(sqlc.arg(verdicts)::queue.verdict[], false);

-- name: Settle :one
-- Move counters, slots, gates and tasks by what was fenced; the jobs of which there is news.
SELECT queue.settle(
    sqlc.arg(endings)::queue.ending[],
    sqlc.arg(tasks)::queue.new_task[],
    sqlc.arg(gates)::queue.new_gate[],
    sqlc.arg(events)::queue.new_event[],
    sqlc.arg(changes)::queue.gate_change[],
    sqlc.arg(most_stalls)::integer
) AS "news!";

-- name: Finish :one
-- Fence and settle attempts that have nothing to store; the jobs of which there is news.
SELECT queue.finish(
    sqlc.arg(verdicts)::queue.verdict[],
    sqlc.arg(lost)::boolean,
    sqlc.arg(most_stalls)::integer
) AS "news!";

-- name: Ended :many
-- How these tasks ended, of those that have.
SELECT task_id, status FROM queue.done WHERE task_id = ANY (sqlc.arg(task_ids)::bigint[]);
