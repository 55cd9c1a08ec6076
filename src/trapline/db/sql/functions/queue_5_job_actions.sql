-- Cancel, pause, resume, reopen and expiry of a job. Each locks the job's row first and adds one event.

-- Add an event to a job whose row, with its last event number, the caller has just updated.
CREATE OR REPLACE FUNCTION queue.add_event(p_job uuid, p_type text, p_data jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    SELECT j.id, j.last_event, j.organisation_id, p_type, p_data FROM queue.job j WHERE j.id = p_job
$$;

-- Cancel: one row and its lanes, however many tasks are queued. False: the job had already ended.
-- Workers abort the running tasks; those that still finish are counted.
CREATE OR REPLACE FUNCTION queue.cancel_job(p_job uuid, p_by text, p_reason text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queue.job j
    SET status = 'cancelled', cancelled = j.cancelled + j.remaining, remaining = 0,
        finished_at = now(), expires_at = now() + queue.retention(
            j.zero_data_retention, 'cancelled', j.ttl, j.failed_ttl),
        cancelled_by = p_by, cancel_reason = p_reason, last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status IN ('pending', 'running', 'paused');
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE queue.lane l SET open = false WHERE l.job_id = p_job AND l.open;
    PERFORM queue.add_terminal_event(p_job);
    RETURN true;
END
$$;

-- Pause: running tasks finish, queued ones stay queued. False: the job was not running.
CREATE OR REPLACE FUNCTION queue.pause_job(p_job uuid, p_by text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queue.job j SET status = 'paused', last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status IN ('pending', 'running');
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE queue.lane l SET open = false WHERE l.job_id = p_job AND l.open;
    PERFORM queue.add_event(p_job, 'job.paused', jsonb_build_object('by', p_by));
    RETURN true;
END
$$;

-- Resume a paused job. False: it was not paused.
CREATE OR REPLACE FUNCTION queue.resume_job(p_job uuid, p_by text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queue.job j
    SET status = CASE WHEN j.started_at IS NULL THEN 'pending' ELSE 'running' END,
        last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status = 'paused';
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE queue.lane l SET open = true, awake = true WHERE l.job_id = p_job AND NOT l.open;
    PERFORM queue.add_event(p_job, 'job.resumed', jsonb_build_object('by', p_by));
    RETURN true;
END
$$;

-- Open the next round of a completed or failed job, so that tasks can be appended.
CREATE OR REPLACE FUNCTION queue.reopen_job(p_job uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queue.job j
    SET status = 'running', round = j.round + 1, finished_at = NULL, expires_at = NULL,
        error = NULL, last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status IN ('completed', 'failed');
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM queue.add_event(p_job, 'job.reopened', '{}');
    RETURN true;
END
$$;

-- Complete a job without tasks, or whose tasks were all there already.
CREATE OR REPLACE FUNCTION queue.end_if_empty(p_job uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queue.job j
    SET status = 'completed', started_at = coalesce(j.started_at, now()), finished_at = now(),
        expires_at = now() + queue.retention(j.zero_data_retention, 'completed', j.ttl, j.failed_ttl),
        last_event = j.last_event + 1
    WHERE j.id = p_job AND j.remaining = 0 AND NOT j.standing
        AND j.status IN ('pending', 'running', 'paused');
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM queue.add_terminal_event(p_job);
    RETURN true;
END
$$;

-- Copy a job's summary to queue.past_job before it is deleted, unless it has zero data retention.
CREATE OR REPLACE FUNCTION queue.remember_job(p_job uuid) RETURNS void
LANGUAGE sql AS $$
INSERT INTO queue.past_job (
    id, organisation_id, kind, status, base_url, total, completed, failed, indexed, auto_index,
    metadata, error, created_at, started_at, finished_at, expired_at
)
SELECT
    j.id, j.organisation_id, j.kind, j.status,
    coalesce(j.options ->> 'url', (
        SELECT t.payload ->> 'url' FROM queue.task t WHERE t.job_id = j.id ORDER BY t.id LIMIT 1
    ), ''),
    j.total - u.total, j.completed - u.completed, j.failed - u.failed, u.indexed,
    coalesce(j.options -> 'index' = 'true', false), j.metadata, j.error, j.created_at,
    coalesce(j.started_at, j.created_at), j.finished_at, j.expires_at
FROM queue.job j
CROSS JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(*) FILTER (WHERE d.status = queue.outcome_completed()) AS completed,
        count(*) FILTER (WHERE d.status = queue.outcome_failed()) AS failed,
        count(*) FILTER (WHERE d.status = queue.outcome_completed() AND t.kind IN ('index', 'file')) AS indexed
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE t.job_id = j.id AND NOT t.counted
) u
WHERE j.id = p_job AND j.finished_at IS NOT NULL AND NOT j.zero_data_retention AND NOT j.standing
-- A large job is deleted in parts: the first call writes the summary.
ON CONFLICT (finished_at, id) DO NOTHING
$$;


-- Delete a job with all its rows, at most p_most in a call. Returns how many; when they are fewer, the
-- job itself is deleted.
CREATE OR REPLACE FUNCTION queue.forget_job(p_job uuid, p_most integer) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT t.id FROM queue.task t WHERE t.job_id = p_job ORDER BY t.id LIMIT p_most);
    gone bigint;
BEGIN
    PERFORM queue.remember_job(p_job);
    DELETE FROM queue.done d WHERE d.task_id = ANY (ids);
    DELETE FROM queue.waiting w WHERE w.task_id = ANY (ids);
    DELETE FROM queue.dead_letter d WHERE d.task_id = ANY (ids);
    DELETE FROM queue.overflow o WHERE o.job_id = p_job AND o.task_id = ANY (ids);
    DELETE FROM queue.task t WHERE t.id = ANY (ids);
    IF cardinality(ids) = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.event e WHERE e.ctid = ANY (ARRAY(
        SELECT i.ctid FROM queue.event i WHERE i.job_id = p_job LIMIT p_most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
        SELECT i.ctid FROM queue.unique_key i WHERE i.scope = p_job LIMIT p_most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
        SELECT i.ctid FROM queue.unique_key i
        WHERE i.job_id = p_job AND i.scope <> i.job_id LIMIT p_most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.ready r USING queue.lane l WHERE l.job_id = p_job AND r.lane_id = l.id;
    DELETE FROM queue.lane l WHERE l.job_id = p_job;
    DELETE FROM queue.job j WHERE j.id = p_job;
    RETURN cardinality(ids);
END
$$;
