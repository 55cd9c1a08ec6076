-- name: LastSnapshot :one
-- The last snapshot of a URL, tag and variant; locked, so that two scrapes are serialised.
SELECT scraped_at, markdown, extracted, gone FROM store.snapshot
WHERE organisation_id = sqlc.arg(organisation_id) AND url_hash = sqlc.arg(url_hash)
    AND tag = sqlc.arg(tag) AND variant = sqlc.arg(variant)
FOR UPDATE;

-- name: KeepSnapshot :exec
-- Store the snapshot of a scrape for the next one; an older scrape changes nothing.
INSERT INTO store.snapshot AS s
    (organisation_id, url_hash, tag, variant, scraped_at, markdown, extracted, gone)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(url_hash), sqlc.arg(tag), sqlc.arg(variant),
    sqlc.arg(scraped_at), sqlc.arg(markdown), sqlc.narg(extracted), sqlc.arg(gone)
)
ON CONFLICT (organisation_id, url_hash, tag, variant) DO UPDATE SET
    scraped_at = excluded.scraped_at, markdown = excluded.markdown,
    extracted = excluded.extracted, gone = excluded.gone
WHERE s.scraped_at <= excluded.scraped_at;
