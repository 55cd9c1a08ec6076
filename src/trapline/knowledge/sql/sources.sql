-- name: LockSourceKey :exec
-- Serialise callers that register files of one application, so that each sees the other's files.
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.source ' || sqlc.arg(key)::text, 0));

-- name: AddFiles :exec
-- Add sources that are files.
INSERT INTO knowledge.source (
    id, organisation_id, application_id, kind, name, uri, config, job_id, sha256, size,
    content_type, created_by
)
SELECT
    new.id, sqlc.arg(organisation_id), sqlc.narg(application_id)::uuid, 'file', new.name, new.uri,
    sqlc.arg(config)::jsonb, sqlc.arg(job_id), new.sha256, new.size, new.content_type,
    sqlc.narg(created_by)::uuid
FROM unnest(
    sqlc.arg(ids)::uuid[], sqlc.arg(names)::text[], sqlc.arg(uris)::text[],
    sqlc.arg(hashes)::bytea[], sqlc.arg(sizes)::bigint[], sqlc.narg(content_types)::text[]
) AS new (id, name, uri, sha256, size, content_type);

-- name: UpdateFiles :exec
-- Update the bytes of existing files.
UPDATE knowledge.source s
SET
    sha256 = new.sha256, size = new.size, content_type = new.content_type, status = 'pending',
    error = NULL, job_id = sqlc.arg(job_id), updated_at = now()
FROM unnest(
    sqlc.arg(ids)::uuid[], sqlc.arg(hashes)::bytea[], sqlc.arg(sizes)::bigint[],
    sqlc.narg(content_types)::text[]
) AS new (id, sha256, size, content_type)
WHERE s.id = new.id;

-- name: AddSource :one
-- Add a source that is fetched.
INSERT INTO knowledge.source (
    id, organisation_id, application_id, kind, name, uri, config, fetching, provider, job_id, site_id,
    rescrape_every, created_by
)
VALUES (
    sqlc.arg(id), sqlc.arg(organisation_id), sqlc.narg(application_id)::uuid, sqlc.arg(kind),
    sqlc.arg(name), sqlc.arg(uri), sqlc.arg(config)::jsonb, sqlc.arg(fetching)::jsonb,
    sqlc.arg(provider),
    sqlc.narg(job_id)::uuid, sqlc.narg(site_id)::uuid, sqlc.narg(rescrape_every)::interval,
    sqlc.narg(created_by)::uuid
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: GetSource :one
-- One source.
SELECT * FROM knowledge.source WHERE id = sqlc.arg(source_id);

-- name: SourceAt :one
-- The source of an application that is fetched from an address.
SELECT * FROM knowledge.source
WHERE organisation_id = sqlc.arg(organisation_id)
    AND application_id IS NOT DISTINCT FROM sqlc.narg(application_id)::uuid
    AND md5(uri) = md5(sqlc.arg(uri)::text) AND uri = sqlc.arg(uri)
    AND kind = sqlc.arg(kind) AND provider = sqlc.arg(provider) AND site_id IS NULL
ORDER BY created_at, id
LIMIT 1;

-- name: SourceOfSite :one
-- The source of what crawls of a site find that name no source of their own.
SELECT * FROM knowledge.source
WHERE organisation_id = sqlc.arg(organisation_id) AND site_id = sqlc.arg(site_id)
    AND application_id IS NULL;

-- name: BeginJob :exec
-- Record the job that fills sources from now on.
UPDATE knowledge.source
SET job_id = sqlc.arg(job_id), status = 'pending', error = NULL, updated_at = now()
WHERE id = ANY (sqlc.arg(source_ids)::uuid[]);

-- name: SourceTargets :many
-- The generation and config of sources, locked against change until the end of the transaction.
SELECT id AS source_id, organisation_id, application_id, kind, name, generation, config, created_by
FROM knowledge.source
WHERE id = ANY (sqlc.arg(source_ids)::uuid[])
ORDER BY id
FOR SHARE;

-- name: FinishFiles :exec
-- Record the result of files, unless another job owns them now.
UPDATE knowledge.source s
SET status = ended.status, error = ended.error, updated_at = now()
FROM unnest(
    sqlc.arg(source_ids)::uuid[], sqlc.arg(job_ids)::uuid[], sqlc.arg(statuses)::text[],
    sqlc.narg(errors)::text[]
) AS ended (id, job_id, status, error)
WHERE s.id = ended.id AND s.job_id = ended.job_id AND s.kind = 'file';

-- name: FinishSources :many
-- Record the result of a job for its sources that are not files. A source without any text has failed.
UPDATE knowledge.source s
SET
    status = CASE WHEN e.found THEN sqlc.arg(status)::text ELSE 'failed' END,
    error = CASE WHEN e.found THEN sqlc.narg(error)::text ELSE sqlc.arg(reason)::text END,
    updated_at = now()
FROM (
    SELECT i.id, sqlc.arg(status)::text <> 'completed' OR EXISTS (
        SELECT FROM knowledge.entry e WHERE e.source_id = i.id AND e.generation = i.generation
    ) AS found
    FROM knowledge.source i WHERE i.job_id = sqlc.arg(job_id)
) AS e
WHERE s.id = e.id AND s.kind <> 'file' AND s.status IN ('pending', 'processing')
RETURNING s.id AS source_id;

-- name: UnfinishedFiles :many
-- The unfinished files of a job, locked.
SELECT id AS source_id, application_id FROM knowledge.source
WHERE job_id = sqlc.arg(job_id) AND kind = 'file' AND status IN ('pending', 'processing')
ORDER BY id
FOR UPDATE;

-- name: ChangeSource :one
-- Update the given fields of a source; `keep_rescrape` keeps its interval.
UPDATE knowledge.source
SET
    name = coalesce(sqlc.narg(name)::text, name),
    rescrape_every = CASE
        WHEN sqlc.arg(keep_rescrape)::boolean THEN rescrape_every
        ELSE sqlc.narg(rescrape_every)::interval END,
    updated_at = now()
WHERE id = sqlc.arg(source_id)
RETURNING *;

-- name: SetFetching :one
-- Update the fetch options of a source, and its interval if one is given.
UPDATE knowledge.source
SET
    fetching = sqlc.arg(fetching)::jsonb,
    rescrape_every = coalesce(sqlc.narg(rescrape_every)::interval, rescrape_every),
    updated_at = now()
WHERE id = sqlc.arg(source_id)
RETURNING *;

-- name: FetchedSources :many
-- The sources of an application that are not files.
SELECT * FROM knowledge.source
WHERE application_id = sqlc.arg(application_id) AND kind <> 'file'
ORDER BY id;

-- name: DeleteSources :execrows
-- Delete sources with their index; in id order, as the end of a job locks them.
DELETE FROM knowledge.source
WHERE id IN (
    SELECT s.id FROM knowledge.source s WHERE s.id = ANY (sqlc.arg(source_ids)::uuid[])
    ORDER BY s.id FOR UPDATE
);

-- name: SourcesOfApplication :many
-- The ids of an application's sources.
SELECT id AS source_id, kind, job_id FROM knowledge.source WHERE application_id = sqlc.arg(application_id);

-- name: EntryHash :one
-- The content hash of a source's text at a URI, in the searched generation.
SELECT e.content_hash, e.version_id
FROM knowledge.entry e JOIN knowledge.source s ON s.id = e.source_id AND s.generation = e.generation
WHERE e.source_id = sqlc.arg(source_id) AND e.uri = sqlc.arg(uri);

-- name: EntriesToReembed :many
-- Texts of a source's present generation that a later one lacks or has with other content.
SELECT
    e.id AS entry_id, e.uri, e.path, e.title, e.language, e.content_type, e.page_id, e.version_id,
    e.content_hash, e.markdown, e.dated_at
FROM knowledge.entry e
WHERE e.source_id = sqlc.arg(source_id) AND e.generation = sqlc.arg(present)::integer
    AND NOT EXISTS (
        SELECT FROM knowledge.entry n
        WHERE n.source_id = e.source_id AND n.generation = sqlc.arg(target)::integer AND n.uri = e.uri
            AND n.content_hash = e.content_hash
    )
ORDER BY e.id
LIMIT sqlc.arg(most)::integer;

-- name: DropStrayEntries :execrows
-- Delete texts of a later generation that the present one lacks.
DELETE FROM knowledge.entry n
WHERE n.source_id = sqlc.arg(source_id) AND n.generation = sqlc.arg(target)::integer
    AND NOT EXISTS (
        SELECT FROM knowledge.entry e
        WHERE e.source_id = n.source_id AND e.generation = sqlc.arg(present)::integer
            AND e.uri = n.uri
    );

-- name: LockSource :one
-- Lock a source while its generation is swapped.
SELECT id AS source_id, organisation_id, generation, config
FROM knowledge.source WHERE id = sqlc.arg(source_id) FOR UPDATE;

-- name: SetConfig :exec
-- Set the config of a source after its re-embedding.
UPDATE knowledge.source
SET config = sqlc.arg(config)::jsonb, renewal_job_id = NULL, updated_at = now()
WHERE id = sqlc.arg(source_id);

-- name: LockForReembedding :many
-- Lock sources while their re-embedding is decided.
SELECT id AS source_id, generation, renewal_job_id FROM knowledge.source
WHERE id = ANY (sqlc.arg(source_ids)::uuid[])
ORDER BY id
FOR UPDATE;

-- name: BeginReembedding :exec
-- Record the job that re-embeds sources.
UPDATE knowledge.source SET renewal_job_id = sqlc.arg(job_id)
WHERE id = ANY (sqlc.arg(source_ids)::uuid[]);

-- name: DropLaterGenerations :exec
-- Delete the unfinished later generations of sources.
WITH gone AS (
    DELETE FROM knowledge.entry e USING knowledge.source s
    WHERE s.id = ANY (sqlc.arg(source_ids)::uuid[])
        AND e.source_id = s.id AND e.generation > s.generation
)
DELETE FROM knowledge.generation g USING knowledge.source s
WHERE s.id = ANY (sqlc.arg(source_ids)::uuid[])
    AND g.source_id = s.id AND g.generation > s.generation;

-- name: PurgeSiteEntries :execrows
-- Delete a batch of the texts of a site: of its own source, and of its pages in any source.
DELETE FROM knowledge.entry
WHERE id IN (
    SELECT e.id FROM knowledge.source AS s
    INNER JOIN knowledge.entry AS e ON s.id = e.source_id
    WHERE s.site_id = sqlc.arg(site_id)
    UNION ALL
    SELECT e.id FROM store.page AS p
    INNER JOIN knowledge.entry AS e ON p.id = e.page_id
    WHERE p.site_id = sqlc.arg(site_id)
    LIMIT sqlc.arg(most)::integer
);

-- name: PurgeSiteSources :execrows
-- Delete the sources of a site's own pages.
DELETE FROM knowledge.source WHERE site_id = sqlc.arg(site_id);

-- name: OrphanedEntries :many
-- Texts that are searched though their page was deleted, by source.
SELECT e.source_id, count(*) AS "entries!"
FROM knowledge.entry AS e
WHERE e.page_id IS NOT NULL AND NOT EXISTS (SELECT FROM store.page AS p WHERE p.id = e.page_id)
GROUP BY e.source_id;
