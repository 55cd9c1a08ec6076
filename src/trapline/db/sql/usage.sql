-- name: AddUsage :exec
-- Add to the usage of organisations, in key order to avoid deadlocks.
INSERT INTO tenancy.usage AS u (organisation_id, day, api_key, pages, tokens)
SELECT organisation_id, day, api_key, sum(pages), sum(tokens)
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(days)::date[],
    sqlc.arg(api_keys)::text[],
    sqlc.arg(pages)::bigint[],
    sqlc.arg(tokens)::bigint[]
) AS new (organisation_id, day, api_key, pages, tokens)
WHERE EXISTS (SELECT FROM tenancy.organisation o WHERE o.id = new.organisation_id)
GROUP BY organisation_id, day, api_key
ORDER BY organisation_id, day, api_key
ON CONFLICT (organisation_id, day, api_key) DO UPDATE
SET pages = u.pages + excluded.pages, tokens = u.tokens + excluded.tokens;

-- name: UsageSince :one
-- The usage of an organisation since a day.
SELECT coalesce(sum(pages), 0)::bigint AS "pages!", coalesce(sum(tokens), 0)::bigint AS "tokens!"
FROM tenancy.usage
WHERE organisation_id = sqlc.arg(organisation_id) AND day >= sqlc.arg(day)::date;

-- name: UsageByMonth :many
-- The usage of an organisation by month, newest last, in total or by key.
SELECT
    date_trunc('month', u.day::timestamp)::date AS "month!",
    (CASE WHEN sqlc.arg(by_key)::boolean THEN coalesce(k.name, '') END)::text AS "key?",
    sum(u.pages)::bigint AS "pages!",
    sum(u.tokens)::bigint AS "tokens!"
FROM tenancy.usage u LEFT JOIN tenancy.api_key k ON k.id::text = u.api_key
WHERE u.organisation_id = sqlc.arg(organisation_id)
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: UsageByDay :many
-- The usage of an organisation by day, oldest first.
SELECT day, sum(pages)::bigint AS "pages!", sum(tokens)::bigint AS "tokens!"
FROM tenancy.usage
WHERE organisation_id = sqlc.arg(organisation_id) AND day >= sqlc.arg(since)::date
GROUP BY day ORDER BY day;
