-- name: RollUpVisits :execrows
-- Count the visits of some days by site, purpose and end.
INSERT INTO archive.visit_day AS d
    (organisation_id, site_id, day, crawl_type, exit_code, visits, took_ms)
SELECT organisation_id, site_id, (started_at AT TIME ZONE 'UTC')::date, crawl_type, exit_code,
       count(*), sum(took_ms)
FROM archive.visit
WHERE started_at >= sqlc.arg(since)::timestamptz AND started_at < sqlc.arg(until)::timestamptz
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (organisation_id, site_id, day, crawl_type, exit_code) DO UPDATE
SET visits = d.visits + excluded.visits, took_ms = d.took_ms + excluded.took_ms;
