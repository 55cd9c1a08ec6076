-- name: NextAgentId :one
-- The id of a new agent. The agent locks it before its row is visible.
SELECT nextval('queue.agent_id_seq') AS "id!";

-- name: RegisterAgent :exec
-- Add an agent that holds its lock.
INSERT INTO queue.agent (id, uuid, name, user_agent, host, pid, capacity, kinds)
OVERRIDING SYSTEM VALUE
VALUES (
    sqlc.arg(agent_id), sqlc.arg(uuid), sqlc.arg(name), sqlc.narg(user_agent), sqlc.arg(host),
    sqlc.arg(pid), sqlc.arg(capacity), sqlc.arg(kinds)
);

-- name: Heartbeat :execrows
-- Renew the heartbeat of an agent; no row if it was declared dead.
UPDATE queue.agent SET heartbeat_at = now()
WHERE id = sqlc.arg(agent_id) AND finished_at IS NULL;

-- name: FinishAgent :exec
-- Mark an agent as finished.
UPDATE queue.agent SET finished_at = now() WHERE id = sqlc.arg(agent_id) AND finished_at IS NULL;

-- name: MarkDead :exec
-- Mark agents as dead.
UPDATE queue.agent SET finished_at = now(), died = true
WHERE id = ANY (sqlc.arg(agents)::bigint[]) AND finished_at IS NULL;

-- name: UnlockedAgents :many
-- Agents without an end whose lock nobody holds.
SELECT a.id FROM queue.agent a
WHERE a.finished_at IS NULL AND NOT EXISTS (
    SELECT FROM pg_locks k
    WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 2
        AND k.classid = sqlc.arg(lock_class)::integer::oid AND k.objid = a.id::oid
        AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
);

-- name: AnyAgent :one
-- Whether a live agent runs this kind.
SELECT EXISTS (
    SELECT FROM queue.agent WHERE finished_at IS NULL AND sqlc.arg(kind)::text = ANY (kinds)
) AS "alive!";

-- name: ListAgents :many
-- Agents that live, then those that ended last, with how many tasks each has leased.
SELECT a.id, a.name, a.host, a.pid, a.capacity, a.kinds, a.started_at, a.heartbeat_at,
       a.finished_at, a.died,
       (SELECT count(*) FROM queue.lease l JOIN queue.leased d ON d.lease_id = l.id
        WHERE l.agent_id = a.id) AS "active!"
FROM queue.agent a
ORDER BY a.finished_at DESC NULLS FIRST, a.id DESC LIMIT sqlc.arg(most)::integer;

-- name: ListDuties :many
-- When each duty of maintenance last ran, and how it went.
SELECT name, ran_at, took, did, error FROM queue.duty ORDER BY error IS NULL, name;
