-- name: BeginScrape :one
-- Take slots and create a scrape with its leased task, or return what blocks it; and look up the page.
-- The same statement verifies a caller that was not verified before.
SELECT
    b.gate_id, b.slots AS "slots!", b.begin_at, b.blocked_by, b.task_id, b.lane_id, b.lease_id,
    k.site_id AS "site_id?", k.last_visit_at AS "last_visit_at?",
    k.last_contentful_at AS "last_contentful_at?", k.last_etag AS "last_etag?",
    k.last_modified AS "last_modified?", k.looks AS "looks!", k.changes AS "changes!",
    k.seconds AS "seconds!", k.failures AS "failures!", k.due_at AS "due_at?",
    k.version_id AS "version_id?", k.content_hash AS "content_hash?", k.variant AS "variant?"
FROM queue.begin_inline_task(
    (sqlc.arg(jobs)::queue.new_direct[])[1],
    (sqlc.arg(tasks)::queue.new_task[])[1],
    (sqlc.arg(gates)::queue.new_gate[])[1],
    sqlc.arg(latest)::timestamptz,
    sqlc.arg(agent_id)::bigint,
    sqlc.arg(lease_time)::interval,
    sqlc.arg(again)::boolean,
    CASE WHEN sqlc.arg(is_claimed)::boolean THEN
        tenancy.write_denial(sqlc.narg(api_key_id)::uuid, sqlc.arg(organisation_id)::uuid) END
) b
CROSS JOIN store.look_up_pages(
    ARRAY[sqlc.arg(organisation_id)::uuid], ARRAY[sqlc.narg(site_id)::uuid],
    ARRAY[sqlc.arg(origin)::text], ARRAY[sqlc.arg(variant)::bytea], ARRAY[sqlc.arg(hash)::bytea]
) k;

-- name: WriteRefusal :one
-- Why a principal may not write now; null if they may.
SELECT tenancy.write_denial(sqlc.narg(api_key_id)::uuid, sqlc.arg(organisation_id)::uuid) AS reason;
