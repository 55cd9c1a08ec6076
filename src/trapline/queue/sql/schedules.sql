-- name: AddSchedule :one
-- Add a schedule.
INSERT INTO queue.schedule (
    id, organisation_id, name, kind, cron, every, timezone, starts_at, ends_at, site_id,
    application_id, template, importance, overlap, catch_up, next_at, created_by
) VALUES (
    sqlc.arg(id), sqlc.arg(organisation_id), sqlc.arg(name), sqlc.arg(kind), sqlc.narg(cron),
    sqlc.narg(every), sqlc.arg(timezone), sqlc.narg(starts_at), sqlc.narg(ends_at),
    sqlc.narg(site_id), sqlc.narg(application_id), sqlc.arg(template), sqlc.arg(importance),
    sqlc.arg(overlap), sqlc.narg(catch_up), sqlc.narg(next_at), sqlc.narg(created_by)
)
RETURNING *;

-- name: ChangeSchedule :one
-- Replace the fields of a schedule.
UPDATE queue.schedule
SET name = sqlc.arg(name), kind = sqlc.arg(kind), cron = sqlc.narg(cron), every = sqlc.narg(every),
    timezone = sqlc.arg(timezone), starts_at = sqlc.narg(starts_at), ends_at = sqlc.narg(ends_at),
    site_id = sqlc.narg(site_id), application_id = sqlc.narg(application_id),
    template = sqlc.arg(template), importance = sqlc.arg(importance), overlap = sqlc.arg(overlap),
    catch_up = sqlc.narg(catch_up), next_at = sqlc.narg(next_at), updated_at = now()
WHERE id = sqlc.arg(id)
RETURNING *;

-- name: GetSchedule :one
-- A schedule by its id.
SELECT * FROM queue.schedule WHERE id = sqlc.arg(schedule_id);

-- name: LockSchedule :one
-- Lock a schedule against firing and changes until the transaction ends.
SELECT * FROM queue.schedule WHERE id = sqlc.arg(schedule_id) FOR UPDATE;

-- name: ScheduleNamed :one
-- A schedule by its name.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id) AND name_key = lower(sqlc.arg(name));

-- name: ListSchedules :many
-- An organisation's schedules before a key, newest first.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND (created_at, id) < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before_id)::uuid)
ORDER BY created_at DESC, id DESC
LIMIT sqlc.arg(most)::integer;

-- name: ListSchedulesOldest :many
-- As ListSchedules, after a key, oldest first.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND (created_at, id) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::uuid)
ORDER BY created_at, id
LIMIT sqlc.arg(most)::integer;

-- name: ListSchedulesNamed :many
-- As ListSchedules, after a name, by name. Names are unique without regard to case.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND name_key > lower(sqlc.arg(after_name)::text)
ORDER BY name_key
LIMIT sqlc.arg(most)::integer;

-- name: ListSchedulesNext :many
-- As ListSchedules, after a key, by next tick; ended schedules come last.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND ((CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id)
        > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::uuid)
ORDER BY (CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id
LIMIT sqlc.arg(most)::integer;

-- name: LabelledSchedules :many
-- An organisation's schedules whose template has a label, newest first.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND template -> 'labels' -> sqlc.arg(label)::text IS NOT NULL
ORDER BY created_at DESC, id DESC
OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: DueSchedules :many
-- Schedules whose next tick is due.
SELECT id FROM queue.schedule WHERE next_at <= sqlc.arg(at)::timestamptz
ORDER BY next_at LIMIT sqlc.arg(most)::integer;

-- name: LockDue :one
-- Lock a due schedule; no row if another process fires it or has fired it.
SELECT * FROM queue.schedule
WHERE id = sqlc.arg(schedule_id) AND next_at <= sqlc.arg(at)::timestamptz
FOR UPDATE SKIP LOCKED;

-- name: MoveSchedule :exec
-- Store the last run and the next tick.
UPDATE queue.schedule
SET next_at = sqlc.narg(next_at), last_tick = coalesce(sqlc.narg(last_tick), last_tick),
    last_job_id = coalesce(sqlc.narg(last_job_id), last_job_id)
WHERE id = sqlc.arg(schedule_id);

-- name: PauseSchedule :execrows
-- Pause a schedule.
UPDATE queue.schedule SET paused_at = now(), next_at = NULL, updated_at = now()
WHERE id = sqlc.arg(schedule_id) AND paused_at IS NULL;

-- name: ResumeSchedule :execrows
-- Resume a paused schedule at its next tick.
UPDATE queue.schedule SET paused_at = NULL, next_at = sqlc.narg(next_at), updated_at = now()
WHERE id = sqlc.arg(schedule_id) AND paused_at IS NOT NULL;

-- name: RemoveSchedule :execrows
-- Delete a schedule with its runs; its jobs stay.
DELETE FROM queue.schedule WHERE id = sqlc.arg(schedule_id);

-- name: RemoveNamed :execrows
-- Delete schedules by name with their runs; their jobs stay.
DELETE FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id) AND name_key = ANY (sqlc.arg(names)::text[]);

-- name: RecordRun :execrows
-- Record the outcome of a tick; no row if it is recorded already.
INSERT INTO queue.schedule_run (schedule_id, organisation_id, tick, manual, outcome, job_id, detail)
VALUES (
    sqlc.arg(schedule_id), sqlc.arg(organisation_id), sqlc.arg(tick), sqlc.arg(manual),
    sqlc.arg(outcome), sqlc.narg(job_id), sqlc.narg(detail))
ON CONFLICT (schedule_id, tick) WHERE NOT manual DO NOTHING;

-- name: ListRuns :many
-- The runs of a schedule, newest first.
SELECT * FROM queue.schedule_run
WHERE schedule_id = sqlc.arg(schedule_id)
    AND (sqlc.narg(before)::bigint IS NULL OR id < sqlc.narg(before))
ORDER BY id DESC OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: StoreRunSummary :exec
-- Store the final summary of a run's job.
UPDATE queue.schedule_run SET summary = sqlc.arg(summary)
WHERE id = sqlc.arg(run_id) AND summary IS NULL;

-- name: GetRun :one
-- One run of a schedule.
SELECT * FROM queue.schedule_run
WHERE schedule_id = sqlc.arg(schedule_id) AND id = sqlc.arg(run_id);

-- name: OpenJob :one
-- Whether a job is open.
SELECT EXISTS (
    SELECT FROM queue.job
    WHERE id = sqlc.narg(job_id) AND status IN ('pending', 'running', 'paused')) AS "open!";

-- name: DropOldRuns :execrows
-- Delete old runs, in batches.
DELETE FROM queue.schedule_run WHERE id = ANY (ARRAY(
    SELECT r.id FROM queue.schedule_run r
    WHERE r.created_at < now() - sqlc.arg(keep)::interval
    ORDER BY r.created_at LIMIT sqlc.arg(most)::integer));
