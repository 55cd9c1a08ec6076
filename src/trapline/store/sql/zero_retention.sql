-- name: AddFleeting :exec
-- Insert content, which is readable for an hour.
INSERT INTO store.fleeting (
    organisation_id, job_id, task_id, stored_at, url, status, content_type, title, language,
    page_type, text, markdown, metadata, links, warning, body, compressed
)
SELECT organisation_id, job_id, task_id, now(), url, status, content_type, title, language,
       page_type, text, markdown, metadata::jsonb, links::jsonb, warning, body,
       compressed
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(job_ids)::uuid[],
    sqlc.arg(task_ids)::bigint[],
    sqlc.arg(urls)::text[],
    sqlc.narg(statuses)::smallint[],
    sqlc.narg(content_types)::text[],
    sqlc.narg(titles)::text[],
    sqlc.narg(languages)::text[],
    sqlc.narg(page_types)::text[],
    sqlc.arg(texts)::text[],
    sqlc.arg(markdowns)::text[],
    sqlc.arg(metadatas)::text[],
    sqlc.arg(linkss)::text[],
    sqlc.narg(warnings)::text[],
    sqlc.arg(bodies)::bytea[],
    sqlc.arg(compresseds)::boolean[]
) AS new (
    organisation_id, job_id, task_id, url, status, content_type, title, language,
    page_type, text, markdown, metadata, links, warning, body, compressed
);

-- name: FleetingOfTasks :many
-- The content of tasks of a job within the last hour.
-- returns: FleetingRow
SELECT task_id, url, status, content_type, title, language, page_type, stored_at, markdown, text,
       metadata, links, warning, body, compressed
FROM store.fleeting
WHERE job_id = sqlc.arg(job_id) AND task_id = ANY (sqlc.arg(tasks)::bigint[])
    AND stored_at > now() - sqlc.arg(keep)::interval;

-- name: FleetingOfJob :many
-- The content of a job's tasks within the last hour, after a task.
-- returns: FleetingRow
SELECT task_id, url, status, content_type, title, language, page_type, stored_at, markdown, text,
       metadata, links, warning, body, compressed
FROM store.fleeting
WHERE job_id = sqlc.arg(job_id) AND task_id > sqlc.arg(after)::bigint
    AND stored_at > now() - sqlc.arg(keep)::interval
ORDER BY task_id LIMIT sqlc.arg(most)::integer;

-- name: DeleteFleeting :execrows
-- Delete old rows of the default partition.
DELETE FROM store.fleeting_default WHERE stored_at <= sqlc.arg(before)::timestamptz;

-- name: FleetingPartitions :many
-- The names of the partitions.
SELECT c.relname::text AS "name!" FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'store.fleeting'::regclass AND c.relname <> 'fleeting_default'
ORDER BY 1;
