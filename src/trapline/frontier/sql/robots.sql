-- name: FreshRobots :one
-- The robots.txt of an origin, if it was read not too long ago.
SELECT * FROM frontier.robots
WHERE origin = sqlc.arg(origin) AND expires_at > sqlc.arg(now);

-- name: KeepRobots :exec
-- Remember the robots.txt of an origin; the newer reading wins.
INSERT INTO frontier.robots AS r (origin, fetched_at, expires_at, status, exit_code, body)
VALUES (
    sqlc.arg(origin), sqlc.arg(fetched_at), sqlc.arg(expires_at),
    sqlc.narg(status), sqlc.arg(exit_code), sqlc.arg(body)
)
ON CONFLICT (origin) DO UPDATE SET
    fetched_at = excluded.fetched_at,
    expires_at = excluded.expires_at,
    status = excluded.status,
    exit_code = excluded.exit_code,
    body = excluded.body
WHERE r.fetched_at < excluded.fetched_at;
