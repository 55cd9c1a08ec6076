-- name: PagesOfDay :one
-- An organisation's daily limit of pages, and the pages it visited today.
SELECT o.max_pages_per_day AS "most?",
       coalesce(CASE WHEN q.day = queue.day_of(sqlc.arg(at)::timestamptz) THEN q.pages END, 0)
           AS "visited!"
FROM tenancy.organisation o
LEFT JOIN queue.quota q ON q.organisation_id = o.id
WHERE o.id = sqlc.arg(organisation_id);
