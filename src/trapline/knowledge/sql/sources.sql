-- name: LockShelf :exec
-- Register files of an application one caller at a time, so that the same file is seen to be there.
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.source ' || sqlc.arg(shelf)::text, 0));

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

-- name: RenewFiles :exec
-- Take over the new bytes of files that are there.
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
-- Note the job that fills sources from now on.
UPDATE knowledge.source
SET job_id = sqlc.arg(job_id), status = 'pending', error = NULL, updated_at = now()
WHERE id = ANY (sqlc.arg(source_ids)::uuid[]);

-- name: Places :many
-- Where the texts of sources go, and how they are made; they stay so until the end of the transaction.
SELECT id AS source_id, organisation_id, application_id, kind, name, generation, config, created_by
FROM knowledge.source
WHERE id = ANY (sqlc.arg(source_ids)::uuid[])
ORDER BY id
FOR SHARE;

-- name: EndFiles :exec
-- Note how files ended; what another job has taken up since is that one's.
UPDATE knowledge.source s
SET status = ended.status, error = ended.error, updated_at = now()
FROM unnest(
    sqlc.arg(source_ids)::uuid[], sqlc.arg(job_ids)::uuid[], sqlc.arg(statuses)::text[],
    sqlc.narg(errors)::text[]
) AS ended (id, job_id, status, error)
WHERE s.id = ended.id AND s.job_id = ended.job_id AND s.kind = 'file';

-- name: EndSources :many
-- Note how a job ended for the sources that it fills and that are not files. One without any text
-- has failed, whatever the job says.
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

-- name: LeftFiles :many
-- Files that a job has left without an end, which they are about to get.
SELECT id AS source_id, application_id FROM knowledge.source
WHERE job_id = sqlc.arg(job_id) AND kind = 'file' AND status IN ('pending', 'processing')
ORDER BY id
FOR UPDATE;

-- name: ChangeSource :one
-- Change what is given of a source; `keep_rescrape` leaves how often as it is.
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
-- Note how a source is fetched from now on; how often stays as it is unless that is said, too.
UPDATE knowledge.source
SET
    fetching = sqlc.arg(fetching)::jsonb,
    rescrape_every = coalesce(sqlc.narg(rescrape_every)::interval, rescrape_every),
    updated_at = now()
WHERE id = sqlc.arg(source_id)
RETURNING *;

-- name: FetchedSources :many
-- The sources of an application that are fetched.
SELECT * FROM knowledge.source
WHERE application_id = sqlc.arg(application_id) AND kind <> 'file'
ORDER BY id;

-- name: DeleteSources :execrows
-- Delete sources with all that search reads of them; in the order of their ids, as they are ended.
DELETE FROM knowledge.source
WHERE id IN (
    SELECT s.id FROM knowledge.source s WHERE s.id = ANY (sqlc.arg(source_ids)::uuid[])
    ORDER BY s.id FOR UPDATE
);

-- name: SourcesOfApplication :many
-- The ids of an application's sources.
SELECT id AS source_id, kind, job_id FROM knowledge.source WHERE application_id = sqlc.arg(application_id);

-- name: EntryHash :one
-- What the text of a source at an address was, in the generation that is searched.
SELECT e.content_hash, e.version_id
FROM knowledge.entry e JOIN knowledge.source s ON s.id = e.source_id AND s.generation = e.generation
WHERE e.source_id = sqlc.arg(source_id) AND e.uri = sqlc.arg(uri);

-- name: EntriesToRenew :many
-- Texts of a source's present generation that a later one lacks, or has in an older state.
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
-- Remove texts of a later generation that the present one has no more.
DELETE FROM knowledge.entry n
WHERE n.source_id = sqlc.arg(source_id) AND n.generation = sqlc.arg(target)::integer
    AND NOT EXISTS (
        SELECT FROM knowledge.entry e
        WHERE e.source_id = n.source_id AND e.generation = sqlc.arg(present)::integer
            AND e.uri = n.uri
    );

-- name: LockSource :one
-- Hold a source while its generations are exchanged.
SELECT id AS source_id, organisation_id, generation, config
FROM knowledge.source WHERE id = sqlc.arg(source_id) FOR UPDATE;

-- name: SetConfig :exec
-- Note how the texts of a source are made from now on, its renewal being done.
UPDATE knowledge.source
SET config = sqlc.arg(config)::jsonb, renewal_job_id = NULL, updated_at = now()
WHERE id = sqlc.arg(source_id);

-- name: LockForRenewal :many
-- Hold sources while it is decided whether they are made anew.
SELECT id AS source_id, generation, renewal_job_id FROM knowledge.source
WHERE id = ANY (sqlc.arg(source_ids)::uuid[])
ORDER BY id
FOR UPDATE;

-- name: BeginRenewal :exec
-- Note the job that makes sources anew.
UPDATE knowledge.source SET renewal_job_id = sqlc.arg(job_id)
WHERE id = ANY (sqlc.arg(source_ids)::uuid[]);

-- name: DropLaterGenerations :exec
-- Remove what an earlier renewal of sources began and did not complete.
WITH gone AS (
    DELETE FROM knowledge.entry e USING knowledge.source s
    WHERE s.id = ANY (sqlc.arg(source_ids)::uuid[])
        AND e.source_id = s.id AND e.generation > s.generation
)
DELETE FROM knowledge.generation g USING knowledge.source s
WHERE s.id = ANY (sqlc.arg(source_ids)::uuid[])
    AND g.source_id = s.id AND g.generation > s.generation;
