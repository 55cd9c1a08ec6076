-- name: LastSnapshot :one
-- What the last scrape of a URL found, for a tag; locked, so that two scrapes come one by one.
SELECT scraped_at, markdown, extracted, gone FROM store.snapshot
WHERE organisation_id = sqlc.arg(organisation_id) AND url_hash = sqlc.arg(url_hash)
    AND tag = sqlc.arg(tag)
FOR UPDATE;

-- name: KeepSnapshot :exec
-- Keep what a scrape found, for the next one; an older one changes nothing.
INSERT INTO store.snapshot AS s
    (organisation_id, url_hash, tag, scraped_at, markdown, extracted, gone)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(url_hash), sqlc.arg(tag), sqlc.arg(scraped_at),
    sqlc.arg(markdown), sqlc.narg(extracted), sqlc.arg(gone)
)
ON CONFLICT (organisation_id, url_hash, tag) DO UPDATE SET
    scraped_at = excluded.scraped_at, markdown = excluded.markdown,
    extracted = excluded.extracted, gone = excluded.gone
WHERE s.scraped_at <= excluded.scraped_at;
