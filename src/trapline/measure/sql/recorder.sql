-- name: AddOperations :exec
-- Write what was done, many at a time.
INSERT INTO measure.operation (
    recorded_at, organisation_id, type, name, milliseconds, error, request_id, job_id, task_id,
    document_url, extra
)
SELECT * FROM unnest(
    sqlc.arg(times)::timestamptz[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(types)::text[],
    sqlc.arg(names)::text[],
    sqlc.arg(milliseconds)::double precision[],
    sqlc.narg(errors)::text[],
    sqlc.narg(request_ids)::uuid[],
    sqlc.narg(job_ids)::uuid[],
    sqlc.narg(task_ids)::bigint[],
    sqlc.narg(document_urls)::text[],
    sqlc.narg(extras)::jsonb[]
);

-- name: AddRequests :exec
-- Write what was answered, many at a time.
INSERT INTO measure.request (
    recorded_at, organisation_id, method, path, route, status, milliseconds, request_id, client,
    user_agent
)
SELECT * FROM unnest(
    sqlc.arg(times)::timestamptz[],
    sqlc.narg(organisation_ids)::uuid[],
    sqlc.arg(methods)::text[],
    sqlc.arg(paths)::text[],
    sqlc.arg(routes)::text[],
    sqlc.arg(statuses)::smallint[],
    sqlc.arg(milliseconds)::double precision[],
    sqlc.arg(request_ids)::uuid[],
    sqlc.narg(clients)::text[],
    sqlc.narg(user_agents)::text[]
);

-- name: AddJobTimes :exec
-- Add to what jobs took, in key order, so that none deadlock.
INSERT INTO measure.job_time AS t
    (job_id, type, organisation_id, operations, failures, milliseconds)
SELECT * FROM unnest(
    sqlc.arg(job_ids)::uuid[],
    sqlc.arg(types)::text[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(operations)::bigint[],
    sqlc.arg(failures)::bigint[],
    sqlc.arg(milliseconds)::double precision[]
) AS new (job_id, type, organisation_id, operations, failures, milliseconds)
ORDER BY new.job_id, new.type
ON CONFLICT (job_id, type) DO UPDATE
SET operations = t.operations + excluded.operations, failures = t.failures + excluded.failures,
    milliseconds = t.milliseconds + excluded.milliseconds;

-- name: DropJobTimes :execrows
-- Forget what jobs took that are long gone, a part at a time.
DELETE FROM measure.job_time WHERE (job_id, type) IN (
    SELECT job_id, type FROM measure.job_time
    WHERE created_at < now() - sqlc.arg(keep)::interval
    ORDER BY created_at LIMIT sqlc.arg(most)::bigint
);
