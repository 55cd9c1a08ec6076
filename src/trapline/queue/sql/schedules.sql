-- name: AddSchedule :one
-- Write a schedule.
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
-- Replace what a schedule says.
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
-- A schedule that nobody else may fire or change until the transaction ends.
SELECT * FROM queue.schedule WHERE id = sqlc.arg(schedule_id) FOR UPDATE;

-- name: ScheduleNamed :one
-- A schedule by its name.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id) AND name_key = lower(sqlc.arg(name));

-- name: ListSchedules :many
-- An organisation's schedules, newest first, before a place in that order.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND (created_at, id) < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before_id)::uuid)
ORDER BY created_at DESC, id DESC
LIMIT sqlc.arg(most)::integer;

-- name: ListSchedulesOldest :many
-- As ListSchedules, oldest first, after a place in that order.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND (created_at, id) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::uuid)
ORDER BY created_at, id
LIMIT sqlc.arg(most)::integer;

-- name: ListSchedulesNamed :many
-- As ListSchedules, by name, after one; of names that differ in case there is only one.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND name_key > lower(sqlc.arg(after_name)::text)
ORDER BY name_key
LIMIT sqlc.arg(most)::integer;

-- name: ListSchedulesNext :many
-- As ListSchedules, what ticks next first and what does not tick any more last, after a place.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(application)::uuid IS NULL OR application_id = sqlc.narg(application))
    AND ((CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id)
        > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::uuid)
ORDER BY (CASE WHEN next_at IS NULL THEN '9000-01-01 00:00:00+00'::timestamptz ELSE next_at END), id
LIMIT sqlc.arg(most)::integer;

-- name: LabelledSchedules :many
-- An organisation's schedules whose template carries a label, newest first.
SELECT * FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id)
    AND template -> 'labels' -> sqlc.arg(label)::text IS NOT NULL
ORDER BY created_at DESC, id DESC
OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: DueSchedules :many
-- Schedules whose next tick has come.
SELECT id FROM queue.schedule WHERE next_at <= sqlc.arg(at)::timestamptz
ORDER BY next_at LIMIT sqlc.arg(most)::integer;

-- name: LockDue :one
-- A due schedule, unless another process is about to fire it or has done so.
SELECT * FROM queue.schedule
WHERE id = sqlc.arg(schedule_id) AND next_at <= sqlc.arg(at)::timestamptz
FOR UPDATE SKIP LOCKED;

-- name: MoveSchedule :exec
-- Note what was fired and when the next tick is.
UPDATE queue.schedule
SET next_at = sqlc.narg(next_at), last_tick = coalesce(sqlc.narg(last_tick), last_tick),
    last_job_id = coalesce(sqlc.narg(last_job_id), last_job_id)
WHERE id = sqlc.arg(schedule_id);

-- name: PauseSchedule :execrows
-- Let a schedule make no jobs.
UPDATE queue.schedule SET paused_at = now(), next_at = NULL, updated_at = now()
WHERE id = sqlc.arg(schedule_id) AND paused_at IS NULL;

-- name: ResumeSchedule :execrows
-- Let a paused schedule go on at its next tick.
UPDATE queue.schedule SET paused_at = NULL, next_at = sqlc.narg(next_at), updated_at = now()
WHERE id = sqlc.arg(schedule_id) AND paused_at IS NOT NULL;

-- name: RemoveSchedule :execrows
-- Delete a schedule with the notes of its runs; its jobs stay.
DELETE FROM queue.schedule WHERE id = sqlc.arg(schedule_id);

-- name: RemoveNamed :execrows
-- Delete schedules by their names, with the notes of their runs; their jobs stay.
DELETE FROM queue.schedule
WHERE organisation_id = sqlc.arg(organisation_id) AND name_key = ANY (sqlc.arg(names)::text[]);

-- name: NoteRun :execrows
-- Note what became of a tick; nothing when it is noted already.
INSERT INTO queue.schedule_run (schedule_id, organisation_id, tick, manual, outcome, job_id, detail)
VALUES (
    sqlc.arg(schedule_id), sqlc.arg(organisation_id), sqlc.arg(tick), sqlc.arg(manual),
    sqlc.arg(outcome), sqlc.narg(job_id), sqlc.narg(detail))
ON CONFLICT (schedule_id, tick) WHERE NOT manual DO NOTHING;

-- name: ListRuns :many
-- What became of a schedule's ticks, latest first.
SELECT * FROM queue.schedule_run
WHERE schedule_id = sqlc.arg(schedule_id)
    AND (sqlc.narg(before)::bigint IS NULL OR id < sqlc.narg(before))
ORDER BY id DESC OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: KeepSummary :exec
-- Note what the job of a tick came to, once that is final.
UPDATE queue.schedule_run SET summary = sqlc.arg(summary)
WHERE id = sqlc.arg(run_id) AND summary IS NULL;

-- name: GetRun :one
-- What became of one tick.
SELECT * FROM queue.schedule_run
WHERE schedule_id = sqlc.arg(schedule_id) AND id = sqlc.arg(run_id);

-- name: OpenJob :one
-- Whether a job has not ended yet.
SELECT EXISTS (
    SELECT FROM queue.job
    WHERE id = sqlc.narg(job_id) AND status IN ('pending', 'running', 'paused')) AS "open!";

-- name: DropOldRuns :execrows
-- Forget what became of ticks long ago, a part at a time.
DELETE FROM queue.schedule_run WHERE id = ANY (ARRAY(
    SELECT r.id FROM queue.schedule_run r
    WHERE r.created_at < now() - sqlc.arg(keep)::interval
    ORDER BY r.created_at LIMIT sqlc.arg(most)::integer));
