-- name: AddEndpoint :exec
-- Add a webhook endpoint to a job.
INSERT INTO deliver.endpoint (
    id, organisation_id, job_id, topic, url, receiver, headers, metadata, events
) VALUES (
    sqlc.arg(id), sqlc.arg(organisation_id), sqlc.arg(job_id), sqlc.arg(topic), sqlc.arg(url),
    sqlc.arg(receiver), sqlc.arg(headers), sqlc.arg(metadata), sqlc.arg(events)
);

-- name: EndpointsOf :many
-- The endpoints of jobs, with their event filters.
SELECT id, organisation_id, job_id, topic, events FROM deliver.endpoint
WHERE job_id = ANY (sqlc.arg(job_ids)::uuid[]);

-- name: AddDeliveries :exec
-- Add deliveries; an existing one stays as it is.
INSERT INTO deliver.delivery (endpoint_id, number, organisation_id, name, data)
SELECT endpoint_id, number, organisation_id, name, data::jsonb
FROM unnest(
    sqlc.arg(endpoint_ids)::uuid[],
    sqlc.arg(numbers)::bigint[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(names)::text[],
    sqlc.arg(datas)::text[]
) AS new (endpoint_id, number, organisation_id, name, data)
ORDER BY endpoint_id, number
ON CONFLICT DO NOTHING;

-- name: WakeEndpoints :exec
-- Make endpoints due now. All are locked, in id order to avoid deadlocks, also those already due: a
-- process that releases one meanwhile must see the new deliveries, or wait.
UPDATE deliver.endpoint e SET due_at = least(e.due_at, now())
WHERE e.id IN (
    SELECT i.id FROM deliver.endpoint i
    WHERE i.id = ANY (sqlc.arg(ids)::uuid[])
    ORDER BY i.id FOR NO KEY UPDATE
);

-- name: LeaseEndpoints :many
-- Lease due endpoints, up to a maximum for each receiver, including those already leased.
UPDATE deliver.endpoint e
SET lease = sqlc.arg(lease), leased_until = now() + sqlc.arg(lease_time)::interval
WHERE e.id IN (
    SELECT i.id FROM deliver.endpoint i
    WHERE i.due_at <= now() AND i.leased_until < now() AND i.id IN (
        SELECT w.id FROM (
            SELECT d.id, d.receiver, row_number() OVER (PARTITION BY d.receiver ORDER BY d.due_at) AS turn
            FROM deliver.endpoint d WHERE d.due_at <= now() AND d.leased_until < now()
        ) w
        LEFT JOIN unnest(sqlc.arg(receivers)::text[], sqlc.arg(in_hand)::integer[])
            AS b (receiver, number) ON b.receiver = w.receiver
        WHERE w.turn + coalesce(b.number, 0) <= sqlc.arg(most_each)::integer
    )
    ORDER BY i.due_at LIMIT sqlc.arg(most)::integer
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING e.id, e.organisation_id, e.job_id, e.topic, e.url, e.receiver, e.headers, e.metadata;

-- name: NextDeliveries :many
-- The deliveries of an endpoint: those set aside that are due, then the pending ones in order.
(
    SELECT d.* FROM deliver.delivery d
    WHERE d.endpoint_id = sqlc.arg(endpoint_id) AND d.state = 'aside' AND d.due_at <= now()
    ORDER BY d.number LIMIT sqlc.arg(most)::integer
)
UNION ALL
(
    SELECT d.* FROM deliver.delivery d
    WHERE d.endpoint_id = sqlc.arg(endpoint_id) AND d.state = 'pending'
    ORDER BY d.number LIMIT sqlc.arg(most)::integer
);

-- name: RenewLease :one
-- Lock a leased endpoint and extend its lease; no row if another process has it.
UPDATE deliver.endpoint SET leased_until = now() + sqlc.arg(lease_time)::interval
WHERE id = sqlc.arg(id) AND lease = sqlc.arg(lease) RETURNING id;

-- name: RecordAttempt :exec
-- Record the result of an attempt.
UPDATE deliver.delivery
SET state = sqlc.arg(state), attempts = attempts + 1, due_at = sqlc.arg(due_at),
    first_attempt_at = coalesce(first_attempt_at, sqlc.arg(attempted_at)),
    last_attempt_at = sqlc.arg(attempted_at),
    delivered_at = CASE WHEN sqlc.arg(state)::text = 'delivered' THEN now() END,
    answer = sqlc.narg(answer), error = sqlc.narg(error), took_ms = sqlc.arg(took_ms)
WHERE endpoint_id = sqlc.arg(endpoint_id) AND number = sqlc.arg(number);

-- name: ReleaseEndpoint :exec
-- Release an endpoint, due when its next delivery is. The caller has locked its row.
UPDATE deliver.endpoint e
SET leased_until = 'epoch', lease = NULL, due_at = least(
    (SELECT d.due_at FROM deliver.delivery d
     WHERE d.endpoint_id = e.id AND d.state = 'pending' ORDER BY d.number LIMIT 1),
    (SELECT min(d.due_at) FROM deliver.delivery d WHERE d.endpoint_id = e.id AND d.state = 'aside'))
WHERE e.id = sqlc.arg(id);

-- name: ListDeliveries :many
-- Deliveries of an organisation, newest first.
SELECT
    d.id, d.name, e.job_id, d.number, e.url, d.state, d.attempts, d.answer, d.error,
    d.created_at, d.due_at, d.last_attempt_at, d.delivered_at
FROM deliver.delivery d JOIN deliver.endpoint e ON e.id = d.endpoint_id
WHERE d.organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state))
    AND (sqlc.narg(job_id)::uuid IS NULL OR e.job_id = sqlc.narg(job_id))
ORDER BY d.created_at DESC, d.number DESC LIMIT sqlc.arg(most)::integer;

-- name: GetDelivery :one
-- One delivery with its endpoint.
SELECT
    d.*, e.job_id, e.topic, e.url, e.receiver, e.headers, e.metadata
FROM deliver.delivery d JOIN deliver.endpoint e ON e.id = d.endpoint_id
WHERE d.organisation_id = sqlc.arg(organisation_id) AND d.id = sqlc.arg(id);

-- name: ReplayDeliveries :many
-- Reset deliveries as if never attempted; return their endpoints.
UPDATE deliver.delivery d
SET state = 'pending', attempts = 0, due_at = now(), first_attempt_at = NULL, delivered_at = NULL,
    created_at = now()
FROM deliver.endpoint e
WHERE e.id = d.endpoint_id AND d.organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(id)::uuid IS NULL OR d.id = sqlc.narg(id))
    AND (sqlc.narg(job_id)::uuid IS NULL OR e.job_id = sqlc.narg(job_id))
    AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state))
    AND d.state IN ('dead', 'aside', 'delivered')
RETURNING d.endpoint_id;

-- name: DropEndpoints :execrows
-- Delete endpoints whose last event is past its retention, with their deliveries.
DELETE FROM deliver.endpoint e
WHERE e.created_at < now() - sqlc.arg(keep)::interval
    AND NOT EXISTS (
        SELECT FROM deliver.delivery d WHERE d.endpoint_id = e.id
            AND (d.state IN ('pending', 'aside') OR d.created_at > now() - sqlc.arg(keep)::interval));

-- name: DropDelivered :execrows
-- Delete received deliveries past their retention.
DELETE FROM deliver.delivery
WHERE state = 'delivered' AND created_at < now() - sqlc.arg(keep)::interval;

-- name: DeliveriesNewest :many
-- Deliveries of an organisation before a position, newest first.
SELECT
    d.id, d.name, e.job_id, d.number, e.url, d.state, d.attempts, d.answer, d.error,
    d.created_at, d.due_at, d.last_attempt_at, d.delivered_at
FROM deliver.delivery d JOIN deliver.endpoint e ON e.id = d.endpoint_id
WHERE d.organisation_id = sqlc.arg(organisation_id)
    AND (d.created_at, d.id) < (sqlc.arg(at)::timestamptz, sqlc.arg(before)::uuid)
    AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state))
    AND (sqlc.narg(job_id)::uuid IS NULL OR e.job_id = sqlc.narg(job_id))
ORDER BY d.created_at DESC, d.id DESC LIMIT sqlc.arg(most)::integer;
