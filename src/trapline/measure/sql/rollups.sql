-- name: RollUpOperations :execrows
-- Add up the operations of some days.
INSERT INTO measure.operation_day AS d
    (organisation_id, day, type, name, operations, failures, milliseconds, slowest)
SELECT organisation_id, (recorded_at AT TIME ZONE 'UTC')::date, type, name, count(*), count(error),
       sum(milliseconds), max(milliseconds)
FROM measure.operation
WHERE recorded_at >= sqlc.arg(since)::timestamptz AND recorded_at < sqlc.arg(until)::timestamptz
GROUP BY 1, 2, 3, 4
ON CONFLICT (organisation_id, day, type, name) DO UPDATE
SET operations = d.operations + excluded.operations, failures = d.failures + excluded.failures,
    milliseconds = d.milliseconds + excluded.milliseconds,
    slowest = greatest(d.slowest, excluded.slowest);

-- name: RollUpRequests :execrows
-- Add up the requests of some days.
INSERT INTO measure.request_day AS d
    (organisation_id, day, method, route, status, requests, milliseconds, slowest)
SELECT organisation_id, (recorded_at AT TIME ZONE 'UTC')::date, method, route, status, count(*),
       sum(milliseconds), max(milliseconds)
FROM measure.request
WHERE recorded_at >= sqlc.arg(since)::timestamptz AND recorded_at < sqlc.arg(until)::timestamptz
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (organisation_id, day, method, route, status) DO UPDATE
SET requests = d.requests + excluded.requests,
    milliseconds = d.milliseconds + excluded.milliseconds,
    slowest = greatest(d.slowest, excluded.slowest);
