-- name: BeginScrape :one
-- Take a place and write a scrape, leased, or learn what is in the way; and what is known of its page.
-- Who asks is judged in the same statement, where that was not done before.
SELECT
    b.gate_id, b.slots AS "slots!", b.begin_at, b.blocked_by, b.task_id, b.lane_id, b.lease_id,
    s.id AS "site_id?", c.last_visit_at AS "last_visit_at?",
    c.last_contentful_at AS "last_contentful_at?", c.last_etag AS "last_etag?",
    c.last_modified AS "last_modified?", coalesce(c.looks, 0) AS "looks!",
    coalesce(c.changes, 0) AS "changes!", coalesce(c.seconds, 0) AS "seconds!",
    coalesce(c.failures, 0) AS "failures!", c.due_at AS "due_at?", p.version_id AS "version_id?",
    p.content_hash AS "content_hash?"
FROM queue.begin_direct(
    (sqlc.arg(jobs)::queue.new_direct[])[1],
    (sqlc.arg(tasks)::queue.new_task[])[1],
    (sqlc.arg(gates)::queue.new_gate[])[1],
    sqlc.arg(latest)::timestamptz,
    sqlc.arg(agent_id)::bigint,
    sqlc.arg(lease_time)::interval,
    sqlc.arg(again)::boolean,
    CASE WHEN sqlc.arg(is_claimed)::boolean THEN
        tenancy.refused(sqlc.narg(api_key_id)::uuid, sqlc.arg(organisation_id)::uuid) END
) b
LEFT JOIN LATERAL (
    SELECT sqlc.narg(given_site)::uuid AS id WHERE sqlc.narg(given_site)::uuid IS NOT NULL
    UNION ALL
    SELECT i.id FROM store.site i
    WHERE sqlc.narg(given_site)::uuid IS NULL AND i.organisation_id = sqlc.arg(organisation_id)
        AND i.base_url = sqlc.arg(origin)::text AND i.implicit AND i.deleted_at IS NULL
) s ON true
LEFT JOIN frontier.url u
    ON u.organisation_id = sqlc.arg(organisation_id) AND u.hash = sqlc.arg(hash)::bytea
LEFT JOIN frontier.candidate c ON c.site_id = s.id AND c.url_id = u.id
LEFT JOIN store.page p ON p.site_id = c.site_id AND p.url_id = c.url_id;

-- name: Refused :one
-- Why someone who was known a moment ago may not write now; nothing when they may.
SELECT tenancy.refused(sqlc.narg(api_key_id)::uuid, sqlc.arg(organisation_id)::uuid) AS reason;
