-- name: ListGroups :many
-- returns: GroupRow
-- Groups of similar pages after an id, oldest first.
SELECT
    g.group_id, g.site_id, g.pages, c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT d.group_id, d.site_id, d.pages
    FROM store.duplicate_group d
    WHERE d.site_id = sqlc.arg(site_id) AND d.pages > 1
        AND d.group_id > sqlc.arg(after)::bigint
    ORDER BY d.group_id
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

-- name: ListGroupsNewest :many
-- returns: GroupRow
-- As ListGroups, before an id, newest first.
SELECT
    g.group_id, g.site_id, g.pages, c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT d.group_id, d.site_id, d.pages
    FROM store.duplicate_group d
    WHERE d.site_id = sqlc.arg(site_id) AND d.pages > 1
        AND d.group_id < sqlc.arg(before)::bigint
    ORDER BY d.group_id DESC
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
ORDER BY g.group_id DESC;

-- name: ListGroupsLargest :many
-- returns: GroupRow
-- As ListGroups, before a key, largest first.
SELECT
    g.group_id, g.site_id, g.pages, c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT d.group_id, d.site_id, d.pages
    FROM store.duplicate_group d
    WHERE d.site_id = sqlc.arg(site_id) AND d.pages > 1
        AND (d.pages, d.group_id) < (sqlc.arg(before_pages)::integer, sqlc.arg(before)::bigint)
    ORDER BY d.pages DESC, d.group_id DESC
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
ORDER BY g.pages DESC, g.group_id DESC;

-- name: MembersOf :many
-- The pages of a group, the original first.
SELECT
    l.page_id, u.url::text AS "url!", u.hash AS "url_hash!", l.similarity, l.by_hand,
    p.content_hash, p.first_seen_at, p.last_seen_at
FROM store.likeness l
JOIN store.page p ON p.id = l.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE l.site_id = sqlc.arg(site_id) AND l.group_id = sqlc.arg(group_id)
ORDER BY l.by_hand, l.page_id
LIMIT sqlc.arg(most)::integer;
