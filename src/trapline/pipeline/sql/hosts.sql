-- name: ListHosts :many
-- returns: HostRow
-- An organisation's hosts by name, after one, with their gates.
SELECT h.id, h.name, h.created_at, g.gap AS "gap?", g.floor AS "floor?", g.bound AS "bound?",
       g.in_flight AS "in_flight?", g.pressure AS "pressure?", g.ready_at AS "ready_at?",
       g.updated_at AS "updated_at?"
FROM frontier.host h LEFT JOIN queue.gate g ON g.name = 'host:' || h.name
WHERE h.organisation_id = sqlc.arg(organisation_id) AND h.name > sqlc.arg(after)::text
ORDER BY h.name LIMIT sqlc.arg(most)::integer;

-- name: GetHost :one
-- returns: HostRow
-- A host by its name, with its gate.
SELECT h.id, h.name, h.created_at, g.gap AS "gap?", g.floor AS "floor?", g.bound AS "bound?",
       g.in_flight AS "in_flight?", g.pressure AS "pressure?", g.ready_at AS "ready_at?",
       g.updated_at AS "updated_at?"
FROM frontier.host h LEFT JOIN queue.gate g ON g.name = 'host:' || h.name
WHERE h.organisation_id = sqlc.arg(organisation_id) AND h.name = sqlc.arg(name)::text;

-- name: BusyHosts :many
-- The hosts that an organisation's open jobs stand at, those that slow them down most first.
SELECT DISTINCT g.name, g.gap, g.floor, g.in_flight, g.pressure, g.ready_at
FROM queue.lane l JOIN queue.gate g ON g.id = l.gate_id
WHERE l.organisation_id = sqlc.arg(organisation_id) AND l.open AND l.awake
    AND starts_with(g.name, 'host:')
ORDER BY g.pressure DESC, g.ready_at DESC, g.name LIMIT sqlc.arg(most)::integer;

-- name: LatestVisits :many
-- The latest visits to the URLs of a host that were found last.
SELECT v.id, v.started_at, v.took_ms, v.exit_code, v.message, v.job_id, v.task_id,
       u.url::text AS "url!"
FROM (
    SELECT x.id FROM frontier.url x WHERE x.host_id = sqlc.arg(host_id)
    ORDER BY x.id DESC LIMIT sqlc.arg(among)::integer
) few
JOIN frontier.url_text u ON u.id = few.id
CROSS JOIN LATERAL (
    SELECT w.id, w.started_at, w.took_ms, w.exit_code, w.message, w.job_id, w.task_id
    FROM archive.visit w WHERE w.url_id = few.id ORDER BY w.started_at DESC LIMIT 1
) v
ORDER BY v.started_at DESC LIMIT sqlc.arg(most)::integer;

-- name: RobotsOfHost :many
-- The robots.txt of a host as it was last read, by http and by https.
SELECT origin, fetched_at, expires_at, status, exit_code, body FROM frontier.robots
WHERE origin = ANY (sqlc.arg(origins)::text[]) ORDER BY origin;
