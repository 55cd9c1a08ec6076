-- name: InternUrls :one
-- The ids of URLs in their order, made where they were not there yet.
SELECT frontier.intern_urls(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(hosts)::text[],
    sqlc.arg(secures)::boolean[],
    sqlc.arg(paths)::text[],
    sqlc.arg(hashes)::bytea[]
) AS "url_ids!";
