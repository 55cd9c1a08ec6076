-- name: OperationsBefore :many
-- Operations of an organisation before a position, latest first.
SELECT * FROM measure.operation
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (recorded_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND recorded_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR type = sqlc.narg(kind))
    AND (NOT sqlc.arg(failed)::boolean OR error IS NOT NULL)
ORDER BY recorded_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: OperationsOfJob :many
-- Operations of a job before a position, latest first.
SELECT * FROM measure.operation
WHERE job_id = sqlc.arg(job_id)
    AND (recorded_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND recorded_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR type = sqlc.narg(kind))
    AND (NOT sqlc.arg(failed)::boolean OR error IS NOT NULL)
ORDER BY recorded_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: RequestsBefore :many
-- Requests of an organisation before a position, latest first.
SELECT * FROM measure.request
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (recorded_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND recorded_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(status)::smallint IS NULL OR status = sqlc.narg(status))
ORDER BY recorded_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: TimesOfJob :many
-- What a job's operations took together, by what they were.
SELECT type, operations, failures, milliseconds FROM measure.job_time
WHERE job_id = sqlc.arg(job_id) ORDER BY type;
