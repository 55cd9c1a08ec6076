-- name: NextAgentId :one
-- The id that a new agent locks before it shows itself.
SELECT nextval('queue.agent_id_seq') AS "id!";

-- name: RegisterAgent :exec
-- Show an agent that already holds its lock.
INSERT INTO queue.agent (id, uuid, name, user_agent, host, pid, capacity, kinds)
OVERRIDING SYSTEM VALUE
VALUES (
    sqlc.arg(agent_id), sqlc.arg(uuid), sqlc.arg(name), sqlc.narg(user_agent), sqlc.arg(host),
    sqlc.arg(pid), sqlc.arg(capacity), sqlc.arg(kinds)
);

-- name: Heartbeat :execrows
-- Say that an agent lives; no row when it was declared dead.
UPDATE queue.agent SET heartbeat_at = now()
WHERE id = sqlc.arg(agent_id) AND finished_at IS NULL;

-- name: FinishAgent :exec
-- An agent has ended by itself.
UPDATE queue.agent SET finished_at = now() WHERE id = sqlc.arg(agent_id) AND finished_at IS NULL;

-- name: BuryAgents :exec
-- Agents were found dead.
UPDATE queue.agent SET finished_at = now(), died = true
WHERE id = ANY (sqlc.arg(agents)::bigint[]) AND finished_at IS NULL;

-- name: UnlockedAgents :many
-- Agents that should be alive but hold no lock.
SELECT a.id FROM queue.agent a
WHERE a.finished_at IS NULL AND NOT EXISTS (
    SELECT FROM pg_locks k
    WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 2
        AND k.classid = sqlc.arg(lock_class)::integer::oid AND k.objid = a.id::oid
        AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
);

-- name: AnyAgent :one
-- Whether a worker lives that runs this kind.
SELECT EXISTS (
    SELECT FROM queue.agent WHERE finished_at IS NULL AND sqlc.arg(kind)::text = ANY (kinds)
) AS "alive!";
