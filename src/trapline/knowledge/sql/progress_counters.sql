-- name: AddCounterChanges :exec
-- Insert changes of the counters of sources and applications.
INSERT INTO knowledge.tally (organisation_id, scope, job_id, minute, total, completed, failed)
SELECT
    organisation_id, scope, job_id, date_trunc('minute', made_at, 'UTC'), total, completed, failed
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[], sqlc.arg(scopes)::uuid[], sqlc.arg(job_ids)::uuid[],
    sqlc.arg(made_ats)::timestamptz[], sqlc.arg(totals)::bigint[], sqlc.arg(completeds)::bigint[],
    sqlc.arg(faileds)::bigint[]
) AS new (organisation_id, scope, job_id, made_at, total, completed, failed);

-- name: LockOutRollup :exec
-- Lock out the rollup while rows are deleted: it would reinsert them, or wait for them.
SELECT pg_advisory_xact_lock_shared(hashtextextended('knowledge.tally', 0));

-- name: TryLockRollup :one
-- Try to lock out deletions until the end of the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('knowledge.tally', 0)) AS "may!";

-- name: TakeChanges :many
-- Delete and return a batch of changes that are not rolled up.
DELETE FROM knowledge.tally
WHERE id IN (
    SELECT t.id FROM knowledge.tally t WHERE NOT t.folded
    ORDER BY t.id LIMIT sqlc.arg(most)::integer FOR UPDATE SKIP LOCKED
)
RETURNING organisation_id, scope, job_id, minute, total, completed, failed, cancelled;

-- name: PutSums :exec
-- Insert the sums of a batch of changes, added to earlier sums.
WITH before AS (
    DELETE FROM knowledge.tally t
    USING unnest(
        sqlc.arg(scopes)::uuid[], sqlc.narg(job_ids)::uuid[], sqlc.arg(minutes)::timestamptz[]
    ) AS k (scope, job_id, minute)
    WHERE t.folded AND t.scope = k.scope AND t.minute = k.minute
        AND t.job_id IS NOT DISTINCT FROM k.job_id
    RETURNING t.organisation_id, t.scope, t.job_id, t.minute, t.total, t.completed, t.failed, t.cancelled
)
INSERT INTO knowledge.tally (
    organisation_id, scope, job_id, minute, total, completed, failed, cancelled, folded
)
SELECT
    a.organisation_id, a.scope, a.job_id, a.minute, sum(a.total), sum(a.completed), sum(a.failed),
    sum(a.cancelled), true
FROM (
    SELECT organisation_id, scope, job_id, minute, total, completed, failed, cancelled
    FROM unnest(
        sqlc.arg(organisation_ids)::uuid[], sqlc.arg(scopes)::uuid[], sqlc.narg(job_ids)::uuid[],
        sqlc.arg(minutes)::timestamptz[], sqlc.arg(totals)::bigint[],
        sqlc.arg(completeds)::bigint[], sqlc.arg(faileds)::bigint[], sqlc.arg(cancelleds)::bigint[]
    ) AS n (organisation_id, scope, job_id, minute, total, completed, failed, cancelled)
    UNION ALL
    SELECT organisation_id, scope, job_id, minute, total, completed, failed, cancelled FROM before
) a
GROUP BY a.organisation_id, a.scope, a.job_id, a.minute;

-- name: DeleteCounters :exec
-- Delete the counters of deleted sources or applications, or of earlier jobs of a source.
-- In id order, as every deletion: otherwise two of them deadlock.
DELETE FROM knowledge.tally
WHERE id IN (
    SELECT t.id FROM knowledge.tally t
    WHERE t.scope = ANY (sqlc.arg(scopes)::uuid[])
        AND (
            sqlc.narg(but_job_id)::uuid IS NULL
            OR t.job_id IS DISTINCT FROM sqlc.narg(but_job_id)::uuid
        )
    ORDER BY t.id FOR UPDATE
);

-- name: CloseJob :exec
-- Count a job's unfinished items as cancelled, and detach its counters from the job.
WITH gone AS (
    DELETE FROM knowledge.tally
    WHERE id IN (
        SELECT t.id FROM knowledge.tally t WHERE t.job_id = sqlc.arg(job_id)
        ORDER BY t.id FOR UPDATE
    )
    RETURNING organisation_id, scope, minute, total, completed, failed, cancelled
)
INSERT INTO knowledge.tally (
    organisation_id, scope, job_id, minute, total, completed, failed, cancelled
)
SELECT
    organisation_id, scope, NULL, minute, sum(total), sum(completed), sum(failed),
    sum(total) - sum(completed) - sum(failed)
FROM gone
GROUP BY organisation_id, scope, minute;
