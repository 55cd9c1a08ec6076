-- name: KnownPages :many
-- What earlier visits left of URLs in sites, and the version that a 304 would confirm, if it is there.
SELECT
    k.position AS "position!", k.site_id AS "site_id?", k.last_visit_at AS "last_visit_at?",
    k.last_contentful_at AS "last_contentful_at?", k.last_etag AS "last_etag?",
    k.last_modified AS "last_modified?", k.looks AS "looks!", k.changes AS "changes!",
    k.seconds AS "seconds!", k.failures AS "failures!", k.due_at AS "due_at?",
    k.version_id AS "version_id?", k.content_hash AS "content_hash?"
FROM store.known_pages(
    sqlc.arg(organisation_ids)::uuid[], sqlc.narg(site_ids)::uuid[], sqlc.arg(origins)::text[],
    sqlc.arg(hashes)::bytea[]
) k;

-- name: LinksOf :one
-- The links of a version, for a page that has not changed since.
SELECT links FROM store.version WHERE id = sqlc.arg(version_id);

-- name: PreviousVersion :one
-- What the version before says, to be compared with what was found.
SELECT text, markdown, extractor_version, sha256 FROM store.version WHERE id = sqlc.arg(version_id);

-- name: LatestVersion :one
-- The latest version of a URL in a site, if it was confirmed lately enough and is old enough.
-- returns: StoredVersion
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM frontier.url_text u
JOIN store.page p ON p.url_id = u.id
JOIN store.site s ON s.id = p.site_id
JOIN store.version v ON v.id = p.version_id
WHERE CASE
        WHEN sqlc.narg(site_id)::uuid IS NOT NULL THEN s.id = sqlc.narg(site_id)
        ELSE s.implicit AND s.base_url = sqlc.arg(origin)
    END
  AND u.organisation_id = sqlc.arg(organisation_id)
  AND u.hash = sqlc.arg(hash)
  AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
  AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.last_seen_at <= sqlc.narg(seen_until));

-- name: VersionById :one
-- A version, with the URL of its page.
-- returns: StoredVersion
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM store.version v
JOIN store.page p ON p.id = v.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE v.id = sqlc.arg(version_id);

-- name: VersionBefore :one
-- The version of the same page before this one.
SELECT b.id, b.fetched_at, b.markdown
FROM store.version v JOIN store.version b ON b.page_id = v.page_id AND b.number = v.number - 1
WHERE v.id = sqlc.arg(version_id);

-- name: VersionsByIds :many
-- Some versions, with the URLs of their pages.
-- returns: StoredVersion
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM store.version v
JOIN store.page p ON p.id = v.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE v.id = ANY (sqlc.arg(version_ids)::bigint[]);

-- name: UrlsOfDomain :many
-- URLs of an organisation on a host, and on its subdomains where a pattern for them is given.
SELECT u.url::text AS "url!"
FROM frontier.host h
JOIN frontier.url p ON p.host_id = h.id
JOIN frontier.url_text u ON u.id = p.id
WHERE h.organisation_id = sqlc.arg(organisation_id)
  AND (h.name = sqlc.arg(host) OR h.name LIKE sqlc.narg(subdomains))
  AND EXISTS (SELECT FROM frontier.candidate c WHERE c.url_id = p.id AND c.failures = 0)
ORDER BY p.id
LIMIT sqlc.arg(most)::integer;

-- name: TitlesOf :many
-- Titles and descriptions of pages that are known, by the hash of their URL.
SELECT u.hash, v.title, (v.metadata ->> 'description')::text AS "description?"
FROM frontier.url u
JOIN store.page p ON p.url_id = u.id
JOIN store.version v ON v.id = p.version_id
WHERE u.organisation_id = sqlc.arg(organisation_id) AND u.hash = ANY (sqlc.arg(hashes)::bytea[]);
