-- Queries as a queue has them. Each says what its function takes and gives; ? means it may be None.

-- name: TableColumns :many
-- Nullable as declared; ids by table, by name and by foreign key; domains, enums, arrays.
-- takes: hint int, states Sequence[Literal['queued', 'active', 'done']], least int
-- gives: id JobId, retry_of JobId?, priority int, tags list[str], done bool, task_id TaskId, lane str?
SELECT j.id, j.retry_of, j.priority, j.tags, j.done, r.id AS task_id, r.lane
FROM queue.job j JOIN queue.ready r ON r.job_id = j.id
WHERE r.id > sqlc.arg(hint) AND j.state = ANY(sqlc.arg(states)) AND j.priority < sqlc.arg(least);

-- name: LeftJoin :many
-- What an outer join may null, and what it may not.
-- takes: nothing
-- gives: id JobId, task_id TaskId?, url str?, text str
SELECT j.id, r.id AS task_id, r.url, coalesce(r.url, '') AS text
FROM queue.job j LEFT JOIN queue.ready r ON r.job_id = j.id;

-- name: FullJoin :many
-- Both sides, and the column that they share.
-- takes: nothing
-- gives: id int?, a str?, b str?
SELECT id, l.url AS a, r.url AS b FROM queue.ready r FULL JOIN queue.leased l USING (id);

-- name: LeftLateral :many
-- The first task of each job, if any.
-- takes: nothing
-- gives: id JobId, url str?
SELECT j.id, t.url FROM queue.job j
LEFT JOIN LATERAL (SELECT url FROM queue.ready r WHERE r.job_id = j.id LIMIT 1) t ON true;

-- name: CrossLateral :many
-- The first task of each job that has one.
-- takes: nothing
-- gives: id JobId, url str
SELECT j.id, t.url FROM queue.job j
CROSS JOIN LATERAL (SELECT url FROM queue.ready r WHERE r.job_id = j.id LIMIT 1) t;

-- name: View :many
-- Views are looked through.
-- takes: nothing
-- gives: id JobId, state Literal['queued', 'active', 'done'], url str?, n int
SELECT * FROM queue.status;

-- name: Claim :many
-- Writing CTEs.
-- takes: hint int, batch int, lease int, lease_time timedelta
-- gives: task_id TaskId, expires datetime, lane str?, n int
WITH gone AS (
    DELETE FROM queue.ready r USING (
        SELECT id FROM queue.ready WHERE id > sqlc.arg(hint)
        ORDER BY id LIMIT sqlc.arg(batch) FOR UPDATE SKIP LOCKED
    ) c
    WHERE r.id = c.id
    RETURNING r.*
), taken AS (
    INSERT INTO queue.leased
    SELECT id, job_id, url, sqlc.arg(lease), now() + sqlc.arg(lease_time)::interval FROM gone
    RETURNING *
)
SELECT t.id AS task_id, t.expires, g.lane, row_number() OVER () AS n
FROM taken t JOIN gone g USING (id);

-- name: Finish :many
-- Arrays side by side; only narg's may hold None.
-- takes: task_ids Sequence[TaskId], results Sequence[str], notes Sequence[str | None]?
-- gives: job_id JobId, result str, note str?, n int, remaining int?, later bool
WITH given AS (
    SELECT * FROM unnest(
        sqlc.arg(task_ids)::bigint[], sqlc.arg(results)::text[], sqlc.narg(notes)::text[]
    ) WITH ORDINALITY AS g(id, result, note, n)
), gone AS (
    DELETE FROM queue.leased l USING given g WHERE l.id = g.id
    RETURNING l.job_id, g.result, g.note, g.n
), counted AS (
    UPDATE queue.job j SET remaining = j.remaining - c.n
    FROM (SELECT job_id, count(*) AS n FROM gone GROUP BY job_id) c
    WHERE j.id = c.job_id
    RETURNING j.id, j.remaining
)
SELECT g.*, c.remaining, g.n > 1 AS later
FROM gone g LEFT JOIN counted c ON c.id = g.job_id;

-- name: AddMany :many
-- Insert what is new.
-- takes: job_ids Sequence[JobId], urls Sequence[str]
-- gives: task_id TaskId
INSERT INTO queue.ready (job_id, url)
SELECT * FROM unnest(sqlc.arg(job_ids)::uuid[], sqlc.arg(urls)::text[])
ON CONFLICT DO NOTHING RETURNING id AS task_id;

-- name: OldOfUpdate :many
-- Both rows exist.
-- takes: nothing
-- gives: was int, is_now int
UPDATE queue.job SET remaining = 0 RETURNING old.remaining AS was, new.remaining AS is_now;

-- name: OldOfInsert :many
-- There was no row.
-- takes: organisation_id OrganisationId
-- gives: was int?
INSERT INTO queue.job (organisation_id) VALUES (sqlc.arg(organisation_id))
RETURNING old.remaining AS was;

-- name: Merge :many
-- Merge with a result.
-- takes: job_id JobId
-- gives: action str?, id JobId
MERGE INTO queue.job j USING (SELECT sqlc.arg(job_id)::uuid AS id) s ON j.id = s.id
WHEN MATCHED THEN UPDATE SET remaining = 1
RETURNING merge_action() AS action, j.id;

-- name: AggregateOfAll :many
-- A whole table may have no row.
-- takes: nothing
-- gives: n int, most int?, states list[str]?, total int
SELECT
    count(*) AS n, max(remaining) AS most, array_agg(state::text) AS states,
    coalesce(sum(remaining), 0)::bigint AS total
FROM queue.job;

-- name: AggregateOfGroups :many
-- A group has one.
-- takes: nothing
-- gives: organisation_id OrganisationId, most int, last datetime?, some int?
SELECT
    organisation_id, max(remaining) AS most, max(finished_at) AS last,
    max(remaining) FILTER (WHERE done) AS some
FROM queue.job GROUP BY 1;

-- name: Union :many
-- Nullable where any branch is.
-- takes: nothing
-- gives: url str?, lane str?, id int
SELECT url, lane, id FROM queue.ready
UNION ALL SELECT url, url, id FROM queue.leased
UNION ALL SELECT NULL, 'x', 1;

-- name: Recursive :many
-- The chain of retries; a union has no one column that it comes from.
-- takes: job_id JobId
-- gives: job_id JobId, depth int, retry_of UUID?
WITH RECURSIVE up AS (
    SELECT id, retry_of, 1 AS depth FROM queue.job WHERE id = sqlc.arg(job_id)
    UNION ALL
    SELECT j.id, j.retry_of, up.depth + 1 FROM up JOIN queue.job j ON j.id = up.retry_of
)
SELECT id AS job_id, depth, retry_of FROM up;

-- name: FunctionRows :many
-- A function says nothing of NULL.
-- takes: ids Sequence[int]
-- gives: task_id TaskId?, job_id JobId?
SELECT * FROM queue.finish(sqlc.arg(ids));

-- name: FunctionRowsOverruled :many
-- The query may.
-- takes: ids Sequence[int]
-- gives: task_id TaskId, remaining int?
SELECT f.task_id AS "task_id!", j.remaining AS "remaining?"
FROM queue.finish(sqlc.arg(ids)) f JOIN queue.job j ON j.id = f.job_id;

-- name: Json :many
-- A key may be missing, and a JSON null becomes NULL.
-- takes: part Any
-- gives: url str?, a Any?, has bool, built Any, n int?
SELECT
    options->>'url' AS url, options->'a' AS a, options @> sqlc.arg(part) AS has,
    jsonb_build_object('k', remaining) AS built, (options->'n')::int AS n
FROM queue.job;

-- name: JsonRows :many
-- Rows out of a document.
-- takes: doc Any
-- gives: url str?
SELECT x.url FROM jsonb_to_recordset(sqlc.arg(doc)) AS x(url text, depth int);

-- name: Composite :many
-- Rows out of composites.
-- takes: children Sequence[tuple[str | None, bytes | None, int | None]]
-- gives: url str?, depth int?
SELECT c.url, c.depth FROM unnest(sqlc.arg(children)::queue.child[]) AS c;

-- name: Expressions :many
-- What can be NULL although nothing around it is, and the other way round.
-- takes: nothing
-- gives: a int?, b int, c bool, d int?, e int, f list[str], g int?, h int, i timedelta?, j datetime, k bool
SELECT
    CASE WHEN done THEN 1 END AS a,
    CASE WHEN done THEN 1 ELSE 2 END AS b,
    EXISTS (SELECT FROM queue.ready) AS c,
    (SELECT max(id) FROM queue.ready) AS d,
    (SELECT count(*) FROM queue.ready) AS e,
    ARRAY(SELECT url FROM queue.ready) AS f,
    nullif(remaining, 0) AS g,
    remaining / 2 AS h,
    now() - finished_at AS i,
    greatest(finished_at, now()) AS j,
    finished_at IS NULL AS k
FROM queue.job;

-- name: RowsFrom :many
-- The shorter one is padded.
-- takes: items Sequence[int]
-- gives: a int?, b int?
SELECT a, b FROM ROWS FROM (unnest(sqlc.arg(items)::int[]), generate_series(1, 3)) AS t(a, b);

-- name: Series :many
-- Numbers.
-- takes: last int
-- gives: n int
SELECT n FROM generate_series(1, sqlc.arg(last)::int) AS n;

-- name: OptionalFilter :many
-- A partitioned table, and a filter that may be left out.
-- takes: job_id JobId?
-- gives: body Any?, at datetime
SELECT body, at FROM queue.event
WHERE sqlc.narg(job_id)::uuid IS NULL OR job_id = sqlc.narg(job_id);
