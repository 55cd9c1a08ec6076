-- A worker's turn in one statement: finish the ended attempts and claim new tasks.

-- Fence tasks that succeeded and held no slots, and write them to done. Returns a tally for each job.
-- The joins are between the batch and its few leases, so hash joins are forced.
CREATE OR REPLACE FUNCTION queue.write_completed(
    p_leases bigint[], p_tasks bigint[], p_results text[]
) RETURNS queue.tally[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    tallies queue.tally[];
BEGIN
    WITH held AS MATERIALIZED (
        SELECT s.id, s.agent_id, s.claimed_at, v.tasks
        FROM (
            SELECT u.lease_id, array_agg(u.task_id) AS tasks
            FROM unnest(p_leases, p_tasks) AS u(lease_id, task_id) GROUP BY u.lease_id
        ) v
        CROSS JOIN LATERAL (
            SELECT s.id, s.agent_id, s.claimed_at FROM queue.lease s
            WHERE s.id = v.lease_id AND s.expires_at > clock_timestamp() OFFSET 0) s
    ),
    gone AS MATERIALIZED (
        DELETE FROM queue.leased d WHERE d.ctid = ANY (ARRAY(
            SELECT i.at FROM held h CROSS JOIN LATERAL (
                SELECT i.ctid AS at FROM queue.leased i
                WHERE i.lease_id = h.id AND i.task_id = ANY (h.tasks) AND i.slots = 0 OFFSET 0) i))
        RETURNING d.lease_id, d.task_id, d.lane_id, d.attempts, d.stalls
    ),
    written AS (
        INSERT INTO queue.done (task_id, status, attempts, stalls, agent_id, started_at, result)
        SELECT g.task_id, queue.outcome_completed(), g.attempts + 1, g.stalls, h.agent_id, h.claimed_at, nullif(r.result, '')::jsonb
        FROM gone g
        JOIN held h ON h.id = g.lease_id
        LEFT JOIN unnest(p_tasks, p_results) AS r(task_id, result)
            ON cardinality(p_results) > 0 AND r.task_id = g.task_id
    )
    SELECT array_agg(ROW(j.job_id, j.organisation_id, j.n, 0, 0, 0, 0)::queue.tally) INTO tallies
    FROM (
        SELECT l.job_id, l.organisation_id, sum(c.n)::bigint AS n
        FROM (SELECT g.lane_id, count(*) AS n FROM gone g GROUP BY g.lane_id) c
        CROSS JOIN LATERAL (
            SELECT l.job_id, l.organisation_id FROM queue.lane l WHERE l.id = c.lane_id OFFSET 0) l
        GROUP BY l.job_id, l.organisation_id
    ) j;
    RETURN tallies;
END
$$;

-- Finish tasks that succeeded and held no slots: the fast path of queue.finish.
CREATE OR REPLACE FUNCTION queue.complete(p_leases bigint[], p_tasks bigint[], p_results text[])
RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    tallies queue.tally[] := queue.write_completed(p_leases, p_tasks, p_results);
    jobs record;
BEGIN
    IF tallies IS NULL THEN RETURN '{}'; END IF;
    jobs := queue.settle_jobs(tallies, '{}', '{}', '{}', '{}');
    RETURN jobs.news;
END
$$;

-- Finish and claim in one round trip. The attempts are either all completed without slots (p_tasks) or
-- of any outcome (p_verdicts): both together would not lock in one order.
--
-- Lanes without limits come first: claiming from them locks nothing that others wait for, so the jobs'
-- rows, which finishing locks, are held for as short as possible. Limited lanes come after it, because
-- it releases slots. Passing rows from function to function costs a copy each time, so this function
-- contains the claim.
CREATE OR REPLACE FUNCTION queue.finish_and_claim(
    p_leases bigint[], p_tasks bigint[], p_results text[], p_verdicts queue.verdict[],
    p_most_stalls integer, p_agent bigint, p_wants queue.want[], p_starting uuid[],
    p_lease_time interval
) RETURNS SETOF queue.claimed
LANGUAGE plpgsql AS $$
DECLARE
    lease bigint;
    want queue.want;
    free queue.want[];
    news uuid[];
BEGIN
    IF cardinality(p_wants) > 0 THEN
        lease := nextval('queue.lease_id_seq');
        free := ARRAY(SELECT w FROM unnest(p_wants) w WHERE NOT w.limited);
        IF cardinality(free) > 0 THEN
            RETURN QUERY SELECT * FROM queue.lease_tasks(lease, free, 0::smallint);
        END IF;
    END IF;

    IF cardinality(p_tasks) > 0 THEN
        news := queue.complete(p_leases, p_tasks, p_results);
    ELSIF cardinality(p_verdicts) > 0 THEN
        news := queue.finish(p_verdicts, false, p_most_stalls);
    END IF;
    IF cardinality(news) > 0 THEN
        RETURN QUERY SELECT * FROM queue.jobs_with_events(news);
    END IF;

    IF lease IS NULL THEN RETURN; END IF;
    FOR want IN SELECT w.* FROM unnest(p_wants) w WHERE w.limited LOOP
        RETURN QUERY SELECT * FROM queue.lease_limited(lease, want);
    END LOOP;
    PERFORM FROM queue.leased l WHERE l.lease_id = lease LIMIT 1;
    IF NOT FOUND THEN RETURN; END IF;
    INSERT INTO queue.lease (id, agent_id, expires_at)
    VALUES (lease, p_agent, clock_timestamp() + p_lease_time);
    -- Jobs that the worker believes to be pending.
    IF cardinality(p_starting) > 0 THEN
        RETURN QUERY SELECT * FROM queue.start_jobs(ARRAY(
            SELECT DISTINCT l.job_id
            FROM queue.leased d
            CROSS JOIN LATERAL (SELECT l.job_id FROM queue.lane l WHERE l.id = d.lane_id OFFSET 0) l
            WHERE d.lease_id = lease AND l.job_id = ANY (p_starting)));
    END IF;
END
$$;

-- Jobs with new events, as rows of a claim.
CREATE OR REPLACE FUNCTION queue.jobs_with_events(p_jobs uuid[]) RETURNS SETOF queue.claimed
LANGUAGE sql STABLE AS $$
    SELECT NULL::bigint, NULL::bigint, NULL::bigint, NULL::smallint, NULL::bigint, NULL::smallint,
           NULL::smallint, NULL::text, NULL::text, NULL::smallint, NULL::interval, NULL::timestamptz,
           NULL::uuid, NULL::text, NULL::timestamptz, j.id, j.status
    FROM queue.job j WHERE j.id = ANY (p_jobs)
$$;
