-- name: BeginInlineTask :one
-- Take slots and create a job with one leased task, or return what blocks it.
SELECT gate_id, slots AS "slots!", begin_at, blocked_by, task_id, lane_id, lease_id
FROM queue.begin_inline_task(
    (sqlc.arg(jobs)::queue.new_direct[])[1],
    (sqlc.arg(tasks)::queue.new_task[])[1],
    (sqlc.arg(gates)::queue.new_gate[])[1],
    sqlc.arg(latest)::timestamptz,
    sqlc.arg(agent_id)::bigint,
    sqlc.arg(lease_time)::interval,
    sqlc.arg(again)::boolean,
    NULL
);

-- name: NextGateTime :one
-- Reserve the next free time of a gate for a task that holds a slot of it.
WITH turn AS MATERIALIZED (
    SELECT g.id, greatest(clock_timestamp(), g.ready_at) AS at, greatest(g.floor, g.gap) AS pause
    FROM queue.gate g WHERE g.id = sqlc.arg(gate_id) FOR NO KEY UPDATE
),
taken AS (
    UPDATE queue.gate g SET ready_at = turn.at + turn.pause FROM turn WHERE g.id = turn.id
)
SELECT at AS "at!" FROM turn;
