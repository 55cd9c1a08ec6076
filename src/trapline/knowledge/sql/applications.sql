-- name: CreateApplication :one
-- Insert an application; no row if its name is taken.
INSERT INTO knowledge.application (organisation_id, name, rescrape_every, created_by)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(name), sqlc.narg(rescrape_every)::interval,
    sqlc.narg(created_by)::uuid
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: GetApplication :one
-- One application.
SELECT * FROM knowledge.application WHERE id = sqlc.arg(application_id);

-- name: ApplicationNamed :one
-- An application by its name, in whatever case.
SELECT * FROM knowledge.application
WHERE organisation_id = sqlc.arg(organisation_id) AND lower(name) = lower(sqlc.arg(name)::text);

-- name: ListApplications :many
-- The applications of an organisation, by name, after one.
SELECT * FROM knowledge.application
WHERE organisation_id = sqlc.arg(organisation_id) AND lower(name) > lower(sqlc.arg(after)::text)
ORDER BY lower(name)
LIMIT sqlc.arg(most)::integer;

-- name: ChangeApplication :one
-- Update the given fields of an application; `keep_rescrape` keeps its interval.
UPDATE knowledge.application
SET
    name = coalesce(sqlc.narg(name)::text, name),
    rescrape_every = CASE
        WHEN sqlc.arg(keep_rescrape)::boolean THEN rescrape_every
        ELSE sqlc.narg(rescrape_every)::interval END,
    updated_at = now()
WHERE id = sqlc.arg(application_id)
RETURNING *;

-- name: DeleteApplication :execrows
-- Delete an application with all its sources.
DELETE FROM knowledge.application WHERE id = sqlc.arg(application_id);
