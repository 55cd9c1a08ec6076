-- name: SetGate :one
-- Create or change a gate.
INSERT INTO queue.gate (name, gap, floor, bound)
VALUES (sqlc.arg(name), sqlc.arg(gap), sqlc.arg(floor), sqlc.narg(bound))
ON CONFLICT (name) DO UPDATE
SET gap = excluded.gap, floor = excluded.floor, bound = excluded.bound, updated_at = now()
RETURNING *;
