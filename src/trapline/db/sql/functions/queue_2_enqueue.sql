-- Enqueue: any number of tasks in one call, in the caller's transaction.

-- Insert the unique keys, in key order, before any row is locked that others wait for.
-- Returns for each task, in order, its new id, or the negated id of the task that has its key.
CREATE OR REPLACE FUNCTION queue.take_keys(p_tasks queue.new_task[]) RETURNS bigint[]
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT nextval('queue.task_id_seq') FROM generate_series(1, cardinality(p_tasks)));
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(p_tasks) t WHERE t.key IS NOT NULL) THEN
        RETURN ids;
    END IF;
    DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
        SELECT e.at FROM unnest(p_tasks) t CROSS JOIN LATERAL (
            SELECT e.ctid AS at FROM queue.unique_key e
            WHERE e.scope = t.key_scope AND e.key = t.key AND e.expires_at <= now()
            OFFSET 0) e));
    INSERT INTO queue.unique_key (scope, key, job_id, task_id, expires_at)
    SELECT DISTINCT ON (t.key_scope, t.key) t.key_scope, t.key, t.job_id, t.id, t.key_expires_at
    FROM unnest(p_tasks, ids) WITH ORDINALITY
        AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
             deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, position)
    WHERE t.key IS NOT NULL AND NOT EXISTS (
        SELECT FROM queue.unique_key e WHERE e.scope = t.key_scope AND e.key = t.key)
    ORDER BY t.key_scope, t.key, t.position
    ON CONFLICT (scope, key) DO NOTHING;
    RETURN ARRAY(
        SELECT CASE WHEN k.task_id IS NULL OR k.task_id = t.id THEN t.id ELSE -k.task_id END
        FROM unnest(p_tasks, ids) WITH ORDINALITY
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, position)
        LEFT JOIN LATERAL (
            SELECT k.task_id FROM queue.unique_key k
            WHERE k.scope = t.key_scope AND k.key = t.key OFFSET 0) k ON true
        ORDER BY t.position);
END
$$;

-- Write the rows of new tasks. p_ids as from take_keys; p_over marks those beyond their job's limit.
-- Their lanes must exist.
CREATE OR REPLACE FUNCTION queue.write_tasks(
    p_tasks queue.new_task[], p_ids bigint[], p_over boolean[]
) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH added AS MATERIALIZED (
        SELECT t.*, l.id AS lane_id, l.organisation_id, g.id AS gate_id
        FROM unnest(p_tasks, p_ids, p_over)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
        CROSS JOIN LATERAL (SELECT g.id FROM queue.gate g WHERE g.name = t.gate OFFSET 0) g
        CROSS JOIN LATERAL (
            SELECT l.id, l.organisation_id FROM queue.lane l
            WHERE l.job_id = t.job_id AND l.gate_id = g.id OFFSET 0) l
        WHERE t.id > 0
    ),
    described AS (
        INSERT INTO queue.task (
            id, organisation_id, job_id, lane_id, gate_id, parent_id, kind, payload, priority,
            max_attempts, timeout, deadline, counted, source, trace_id)
        OVERRIDING SYSTEM VALUE
        SELECT id, organisation_id, job_id, lane_id, gate_id, parent_id, kind, payload::jsonb, priority,
               max_attempts, timeout, deadline, counted, source, trace_id
        FROM added
    ),
    later AS (
        INSERT INTO queue.waiting (task_id, lane_id, priority, run_at, deadline)
        SELECT id, lane_id, priority, run_at, deadline
        FROM added WHERE NOT over AND run_at > now()
    ),
    beyond AS (
        INSERT INTO queue.overflow (job_id, task_id)
        SELECT job_id, id FROM added WHERE over
    )
    -- The turn of a first attempt is its id, by which queue.raise_priorities finds the row.
    INSERT INTO queue.ready (lane_id, priority, turn, task_id, deadline)
    SELECT lane_id, priority, id, id, deadline
    FROM added WHERE NOT over AND (run_at IS NULL OR run_at <= now())
    ORDER BY id
$$;

-- Raise the priority of tasks that are there already and were found again with a better one.
-- Tasks that are claimed meanwhile, wait for a retry or have run keep theirs.
CREATE OR REPLACE FUNCTION queue.raise_priorities(p_tasks queue.new_task[], p_ids bigint[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH found AS MATERIALIZED (
        SELECT -t.id AS id, min(t.priority) AS priority
        FROM unnest(p_tasks, p_ids)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id)
        WHERE t.id < 0 GROUP BY t.id
    ),
    better AS MATERIALIZED (
        SELECT r.at, r.lane_id, r.turn, f.id, f.priority, r.attempts, r.stalls, r.deadline
        FROM found f
        CROSS JOIN LATERAL (
            SELECT k.lane_id, k.priority FROM queue.task k
            WHERE k.id = f.id AND k.priority > f.priority OFFSET 0) k
        CROSS JOIN LATERAL (
            SELECT r.ctid AS at, r.* FROM queue.ready r
            WHERE r.lane_id = k.lane_id AND r.priority = k.priority AND r.turn = f.id
            FOR UPDATE SKIP LOCKED) r
    ),
    gone AS (
        DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(SELECT b.at FROM better b))
    ),
    raised AS (
        UPDATE queue.task t SET priority = b.priority FROM better b WHERE t.id = b.id
    )
    INSERT INTO queue.ready (lane_id, priority, turn, task_id, attempts, stalls, deadline)
    SELECT b.lane_id, b.priority, b.turn, b.id, b.attempts, b.stalls, b.deadline FROM better b
$$;

-- Add tasks to one job. Returns for each its id and its state, as TaskState in trapline.queue.tasks:
-- 0 queued, 1 overflow, 2 already there (then with the id of the older task).
CREATE OR REPLACE FUNCTION queue.enqueue(
    p_job uuid, p_tasks queue.new_task[], p_gates queue.new_gate[],
    OUT task_id bigint, OUT place smallint
) RETURNS SETOF record
LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[] := queue.take_keys(p_tasks);
    over boolean[];
    job record;
    news record;
BEGIN
    SELECT j.* INTO job FROM queue.job j WHERE j.id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'There is no job %.', p_job USING ERRCODE = 'TQ404';
    ELSIF job.status NOT IN ('pending', 'running', 'paused') THEN
        RAISE EXCEPTION 'Job % is %: it accepts no more tasks.', p_job, job.status
        USING ERRCODE = 'TQ409';
    END IF;
    over := queue.mark_overflow(
        p_tasks, ids, p_job, coalesce(job.task_limit, 9223372036854775807) - job.reserved);
    SELECT count(*) FILTER (WHERE NOT t.over) AS total,
           count(*) FILTER (WHERE t.counted AND NOT t.over) AS counted,
           count(*) FILTER (WHERE t.over) AS over,
           count(*) FILTER (WHERE t.source = queue.source_found() AND NOT t.over) AS found,
           count(*) FILTER (WHERE t.source = queue.source_sitemap() AND NOT t.over) AS from_sitemap
    INTO news
    FROM unnest(p_tasks, ids, over)
        AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
             deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
    WHERE t.id > 0;
    UPDATE queue.job j
    SET total = j.total + news.total, remaining = j.remaining + news.total,
        reserved = j.reserved + news.counted, overflow = j.overflow + news.over,
        found = j.found + news.found, from_sitemap = j.from_sitemap + news.from_sitemap
    WHERE j.id = p_job;
    PERFORM queue.open_lanes(p_job, job.organisation_id, job.priority, p_gates);
    PERFORM queue.write_tasks(p_tasks, ids, over);
    IF EXISTS (SELECT FROM unnest(ids) u(id) WHERE u.id < 0) THEN
        PERFORM queue.raise_priorities(p_tasks, ids);
    END IF;
    RETURN QUERY SELECT abs(u.id), (CASE WHEN u.id < 0 THEN 2 WHEN u.over THEN 1 ELSE 0 END)::smallint
    FROM unnest(ids, over) AS u(id, over);
END
$$;

-- Move the waiting tasks that are due to ready. Returns how many, and when the next one is due.
CREATE OR REPLACE FUNCTION queue.promote(p_most integer, OUT promoted bigint, OUT next_at timestamptz)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lanes bigint[];
BEGIN
    WITH due AS MATERIALIZED (
        SELECT w.ctid AS at FROM queue.waiting w WHERE w.run_at <= now()
        ORDER BY w.run_at LIMIT p_most FOR UPDATE SKIP LOCKED
    ),
    gone AS MATERIALIZED (
        DELETE FROM queue.waiting w WHERE w.ctid = ANY (ARRAY(SELECT at FROM due)) RETURNING w.*
    ),
    -- The lane of a cancelled job may be deleted already; then the task is dropped.
    kept AS MATERIALIZED (
        SELECT g.* FROM gone g CROSS JOIN LATERAL (
            SELECT l.id FROM queue.lane l WHERE l.id = g.lane_id FOR KEY SHARE OFFSET 0) l
    ),
    moved AS (
        INSERT INTO queue.ready (lane_id, priority, task_id, attempts, stalls, deadline)
        SELECT lane_id, priority, task_id, attempts, stalls, deadline FROM kept ORDER BY run_at
    )
    SELECT count(*), array_agg(DISTINCT lane_id) INTO promoted, lanes FROM kept;
    PERFORM queue.wake_lanes(lanes);
    SELECT min(w.run_at) INTO next_at FROM queue.waiting w;
END
$$;
