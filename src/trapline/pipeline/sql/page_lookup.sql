-- name: KnownPages :many
-- The states of pages after earlier visits, with the version that a 304 would confirm.
SELECT
    k.position AS "position!", k.site_id AS "site_id?", k.last_visit_at AS "last_visit_at?",
    k.last_contentful_at AS "last_contentful_at?", k.last_etag AS "last_etag?",
    k.last_modified AS "last_modified?", k.looks AS "looks!", k.changes AS "changes!",
    k.seconds AS "seconds!", k.failures AS "failures!", k.due_at AS "due_at?",
    k.version_id AS "version_id?", k.content_hash AS "content_hash?", k.variant AS "variant?"
FROM store.look_up_pages(
    sqlc.arg(organisation_ids)::uuid[], sqlc.narg(site_ids)::uuid[], sqlc.arg(origins)::text[],
    sqlc.arg(variants)::bytea[], sqlc.arg(hashes)::bytea[]
) k;

-- name: LinksOf :one
-- The links of a version.
SELECT links FROM store.version WHERE id = sqlc.arg(version_id);

-- name: PreviousVersion :one
-- The content of a version, to compare with a new document.
SELECT text, markdown, extractor_version, sha256 FROM store.version WHERE id = sqlc.arg(version_id);

-- name: LatestVersion :one
-- returns: StoredVersion
-- The latest version of a URL in a site, of a variant and within an age.
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM frontier.url_text u
JOIN store.page p ON p.url_id = u.id
JOIN store.site s ON s.id = p.site_id
JOIN store.version v ON v.id = p.version_id
WHERE CASE
        WHEN sqlc.narg(site_id)::uuid IS NOT NULL THEN s.id = sqlc.narg(site_id)
        ELSE s.implicit AND s.base_url = sqlc.arg(origin) AND s.variant = sqlc.arg(variant)
    END
  AND p.variant = sqlc.arg(variant) AND v.variant = sqlc.arg(variant)
  AND u.organisation_id = sqlc.arg(organisation_id)
  AND u.hash = sqlc.arg(hash)
  AND (sqlc.narg(seen_since)::timestamptz IS NULL OR p.last_seen_at >= sqlc.narg(seen_since))
  AND (sqlc.narg(seen_until)::timestamptz IS NULL OR p.last_seen_at <= sqlc.narg(seen_until));

-- name: VersionById :one
-- returns: StoredVersion
-- A version with the URL of its page.
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM store.version v
JOIN store.page p ON p.id = v.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE v.id = sqlc.arg(version_id);

-- name: VersionBefore :one
-- The previous version of the same page and variant.
SELECT b.id, b.fetched_at, b.markdown
FROM store.version v
JOIN store.version b ON b.page_id = v.page_id AND b.number < v.number AND b.variant = v.variant
WHERE v.id = sqlc.arg(version_id)
ORDER BY b.number DESC LIMIT 1;

-- name: VersionsByIds :many
-- returns: StoredVersion
-- Versions with the URLs of their pages.
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM store.version v
JOIN store.page p ON p.id = v.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE v.id = ANY (sqlc.arg(version_ids)::bigint[]);

-- name: UrlsOfDomain :many
-- URLs of an organisation on a host and, with a pattern, on its subdomains, found under these variants.
SELECT u.url::text AS "url!"
FROM frontier.host h
JOIN frontier.url p ON p.host_id = h.id
JOIN frontier.url_text u ON u.id = p.id
WHERE h.organisation_id = sqlc.arg(organisation_id)
  AND (h.name = sqlc.arg(host) OR h.name LIKE sqlc.narg(subdomains))
  AND EXISTS (
      SELECT FROM frontier.candidate c JOIN store.site s ON s.id = c.site_id
      WHERE c.url_id = p.id AND c.failures = 0 AND s.variant = ANY (sqlc.arg(variants)::bytea[])
  )
ORDER BY p.id
LIMIT sqlc.arg(most)::integer;

-- name: TitlesOf :many
-- Titles and descriptions of pages of these variants, by URL hash.
SELECT u.hash, v.title, (v.metadata ->> 'description')::text AS "description?"
FROM frontier.url u
JOIN store.page p ON p.url_id = u.id
JOIN store.version v ON v.id = p.version_id
WHERE u.organisation_id = sqlc.arg(organisation_id) AND u.hash = ANY (sqlc.arg(hashes)::bytea[])
  AND v.variant = ANY (sqlc.arg(variants)::bytea[]);
