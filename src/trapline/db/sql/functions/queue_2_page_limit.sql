-- The page limit of a job, and its overflow: tasks beyond the limit wait in queue.overflow until a
-- counted task ends skipped.

-- Mark the new tasks beyond the limit; p_room counted tasks are still within it.
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

-- Count one job's new tasks within and beyond its limit, and the older ones from its overflow that
-- take over the reservations of skipped tasks.
CREATE OR REPLACE FUNCTION queue.count_new_tasks(
    p_endings queue.ending[], p_tasks queue.new_task[], p_ids bigint[], p_job uuid,
    p_skipped bigint, p_limit bigint, p_reserved bigint, p_overflow bigint,
    OUT total bigint, OUT counted bigint, OUT beyond bigint, OUT linked bigint,
    OUT from_sitemap bigint, OUT released bigint, OUT admitted bigint, OUT over boolean[]
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    total := 0; counted := 0; beyond := 0; linked := 0; from_sitemap := 0;
    released := 0; admitted := 0;
    IF p_skipped > 0 THEN
        SELECT count(*) INTO released
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.counted FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.job_id = p_job AND e.verdict = queue.outcome_skipped() AND t.counted;
        admitted := least(released, p_overflow);
    END IF;
    IF cardinality(p_tasks) > 0 THEN
        -- No new task overtakes an older one in the overflow.
        over := queue.mark_overflow(p_tasks, p_ids, p_job, CASE
            WHEN p_limit IS NULL THEN 9223372036854775807
            WHEN p_overflow > admitted THEN 0
            ELSE p_limit - p_reserved + released - admitted END);
        SELECT count(*) FILTER (WHERE NOT t.over),
               count(*) FILTER (WHERE t.counted AND NOT t.over),
               count(*) FILTER (WHERE t.over),
               count(*) FILTER (WHERE t.source = queue.source_found() AND NOT t.over),
               count(*) FILTER (WHERE t.source = queue.source_sitemap() AND NOT t.over)
        INTO total, counted, beyond, linked, from_sitemap
        FROM unnest(p_tasks, p_ids, over)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
        WHERE t.job_id = p_job AND t.id > 0;
    END IF;
    IF admitted > 0 THEN
        SELECT linked + count(*) FILTER (WHERE s.source = queue.source_found()),
               from_sitemap + count(*) FILTER (WHERE s.source = queue.source_sitemap())
        INTO linked, from_sitemap
        FROM (
            SELECT o.task_id FROM queue.overflow o WHERE o.job_id = p_job
            ORDER BY o.task_id LIMIT admitted) a
        CROSS JOIN LATERAL (SELECT t.source FROM queue.task t WHERE t.id = a.task_id OFFSET 0) s;
    END IF;
END
$$;

-- Move the oldest tasks of a job's overflow to ready.
CREATE OR REPLACE FUNCTION queue.admit_overflow(p_job uuid, p_most bigint) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lanes bigint[];
BEGIN
    WITH oldest AS MATERIALIZED (
        DELETE FROM queue.overflow o WHERE o.ctid = ANY (ARRAY(
            SELECT i.ctid FROM queue.overflow i WHERE i.job_id = p_job
            ORDER BY i.task_id LIMIT p_most))
        RETURNING o.task_id
    ),
    admitted AS MATERIALIZED (
        SELECT t.* FROM oldest o
        CROSS JOIN LATERAL (
            SELECT t.id, t.lane_id, t.priority, t.deadline FROM queue.task t
            WHERE t.id = o.task_id OFFSET 0) t
    ),
    moved AS (
        INSERT INTO queue.ready (lane_id, priority, task_id, deadline)
        SELECT a.lane_id, a.priority, a.id, a.deadline FROM admitted a ORDER BY a.id
    )
    SELECT array_agg(DISTINCT a.lane_id) INTO lanes FROM admitted a;
    PERFORM l.id FROM queue.lane l WHERE l.id = ANY (lanes) ORDER BY l.id FOR KEY SHARE;
    PERFORM queue.wake_lanes(lanes);
END
$$;
