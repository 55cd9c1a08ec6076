-- name: AddTally :exec
-- Note what changed for sources and applications.
INSERT INTO knowledge.tally (organisation_id, scope, job_id, minute, total, completed, failed)
SELECT
    organisation_id, scope, job_id, date_trunc('minute', made_at, 'UTC'), total, completed, failed
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[], sqlc.arg(scopes)::uuid[], sqlc.arg(job_ids)::uuid[],
    sqlc.arg(made_ats)::timestamptz[], sqlc.arg(totals)::bigint[], sqlc.arg(completeds)::bigint[],
    sqlc.arg(faileds)::bigint[]
) AS new (organisation_id, scope, job_id, made_at, total, completed, failed);

-- name: HoldOffFolding :exec
-- Before rows are removed: whoever folds would put back what is being removed, or wait for it.
SELECT pg_advisory_xact_lock_shared(hashtextextended('knowledge.tally', 0));

-- name: MayFold :one
-- Whether nobody is removing rows; nobody does until the transaction ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('knowledge.tally', 0)) AS "may!";

-- name: TakeUnfolded :many
-- Take some rows out that are to be made fewer.
DELETE FROM knowledge.tally
WHERE id IN (
    SELECT t.id FROM knowledge.tally t WHERE NOT t.folded
    ORDER BY t.id LIMIT sqlc.arg(most)::integer FOR UPDATE SKIP LOCKED
)
RETURNING organisation_id, scope, job_id, minute, total, completed, failed, cancelled;

-- name: PutFolded :exec
-- Put back one row of all that were taken out, with the one that was there.
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

-- name: ForgetTally :exec
-- Drop what is counted of sources or applications that are gone, or of earlier jobs of a source.
-- In the order of their ids, as all who remove rows do: so nobody waits for one who waits for him.
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
-- What a job left undone is cancelled; after that its counts need not be told from others'.
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
