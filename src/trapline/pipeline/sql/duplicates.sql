-- name: ListGroups :many
-- Groups of pages that are alike, after one.
SELECT
    g.group_id AS "group_id!", g.site_id, g.pages AS "pages!", c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT l.site_id, l.group_id, count(*) AS pages
    FROM store.likeness l
    WHERE l.site_id = sqlc.arg(site_id) AND l.group_id > sqlc.arg(after)::bigint
    GROUP BY l.site_id, l.group_id
    HAVING count(*) > 1
    ORDER BY l.group_id
    LIMIT sqlc.arg(most)::integer
) g
JOIN store.content_hash c ON c.id = g.group_id
CROSS JOIN LATERAL (
    SELECT l.page_id FROM store.likeness l
    WHERE l.site_id = g.site_id AND l.group_id = g.group_id
    ORDER BY l.by_hand, l.page_id LIMIT 1
) first
JOIN store.page p ON p.id = first.page_id
JOIN frontier.url_text u ON u.id = p.url_id
ORDER BY g.group_id;

-- name: MembersOf :many
-- The pages of a group, the original first, after a place in that order.
SELECT
    l.page_id, u.url::text AS "url!", u.hash AS "url_hash!", l.similarity, l.by_hand,
    p.content_hash, p.first_seen_at, p.last_seen_at
FROM store.likeness l
JOIN store.page p ON p.id = l.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE l.site_id = sqlc.arg(site_id) AND l.group_id = sqlc.arg(group_id)
ORDER BY l.by_hand, l.page_id
LIMIT sqlc.arg(most)::integer;
