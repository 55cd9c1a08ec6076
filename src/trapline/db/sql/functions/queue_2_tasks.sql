-- Adding tasks: in the caller's transaction, any number in one call, over any jobs.

-- Take the unique keys first, in their order, before any row that others wait for is locked.
-- Returns, for each task in its order, its new id, or the negated id of the one already there.
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

-- Write the rows of tasks that are let in. p_ids as from take_keys; p_over says which of them
-- are beyond their job's limit. Lanes must be there.
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
    INSERT INTO queue.ready (lane_id, priority, task_id, deadline)
    SELECT lane_id, priority, id, deadline
    FROM added WHERE NOT over AND (run_at IS NULL OR run_at <= now())
    ORDER BY id
$$;

-- Which of the new tasks are beyond the limit, when so many that count may still be let in.
CREATE OR REPLACE FUNCTION queue.mark_overflow(
    p_tasks queue.new_task[], p_ids bigint[], p_job uuid, p_room bigint
) RETURNS boolean[]
LANGUAGE sql AS $$
    SELECT array_agg(
        t.job_id = p_job AND t.counted AND t.id > 0
        AND t.nth > p_room ORDER BY t.position)
    FROM (
        SELECT u.*, count(*) FILTER (WHERE u.job_id = p_job AND u.counted AND u.id > 0)
            OVER (ORDER BY u.position) AS nth
        FROM unnest(p_tasks, p_ids) WITH ORDINALITY
            AS u(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, position)
    ) t
$$;

-- Add tasks to one job. Each answer is the task's id and where it is:
-- 0 queued, 1 beyond the limit, 2 already there (then the id is that of the other one).
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
           count(*) FILTER (WHERE t.source = 1 AND NOT t.over) AS found,
           count(*) FILTER (WHERE t.source = 2 AND NOT t.over) AS from_sitemap
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
    RETURN QUERY SELECT abs(u.id), (CASE WHEN u.id < 0 THEN 2 WHEN u.over THEN 1 ELSE 0 END)::smallint
    FROM unnest(ids, over) AS u(id, over);
END
$$;

-- Let waiting tasks run whose time has come. Returns how many, and when the next one is due.
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
    -- The lane of a cancelled job may be gone already; then so is the task.
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
