-- A worker's turn: what nearly every batch is, in as few statements as it takes.

-- Fence tasks that succeeded and had no slots, and write them down. Returns what that comes to for
-- each job. The joins here are between the batch and its few leases: hashed, whatever the planner
-- thinks of their size.
CREATE OR REPLACE FUNCTION queue.write_done(
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
        SELECT g.task_id, 0, g.attempts + 1, g.stalls, h.agent_id, h.claimed_at, nullif(r.result, '')::jsonb
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

-- Finish tasks that succeeded and were counted in no slots. The same as finish, for less.
CREATE OR REPLACE FUNCTION queue.complete(p_leases bigint[], p_tasks bigint[], p_results text[])
RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    tallies queue.tally[] := queue.write_done(p_leases, p_tasks, p_results);
    jobs record;
BEGIN
    IF tallies IS NULL THEN RETURN '{}'; END IF;
    jobs := queue.settle_jobs(tallies, '{}', '{}', '{}', '{}');
    RETURN jobs.news;
END
$$;

-- The whole turn in one round trip: finish what is done, claim what comes next. What is done is either
-- all plain success (p_tasks) or of any kind (p_verdicts): together they would lock in no one order.
--
-- Lanes without limits come first: claiming from them locks nothing that others wait for, and so the
-- jobs' rows, which finishing locks, are held no longer than they must. Limited lanes come after it,
-- for the slots that it gives back. Handing rows from function to function costs a copy each time, so
-- the claim stands here.
CREATE OR REPLACE FUNCTION queue.turn(
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
            RETURN QUERY SELECT * FROM queue.move(lease, free, 0::smallint);
        END IF;
    END IF;

    IF cardinality(p_tasks) > 0 THEN
        news := queue.complete(p_leases, p_tasks, p_results);
    ELSIF cardinality(p_verdicts) > 0 THEN
        news := queue.finish(p_verdicts, false, p_most_stalls);
    END IF;
    IF cardinality(news) > 0 THEN
        RETURN QUERY SELECT * FROM queue.tidings(news);
    END IF;

    IF lease IS NULL THEN RETURN; END IF;
    FOR want IN SELECT w.* FROM unnest(p_wants) w WHERE w.limited LOOP
        RETURN QUERY SELECT * FROM queue.move_limited(lease, want);
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

-- Jobs with news, in the shape of a claim's answer.
CREATE OR REPLACE FUNCTION queue.tidings(p_jobs uuid[]) RETURNS SETOF queue.claimed
LANGUAGE sql STABLE AS $$
    SELECT NULL::bigint, NULL::bigint, NULL::bigint, NULL::smallint, NULL::bigint, NULL::smallint,
           NULL::smallint, NULL::text, NULL::text, NULL::smallint, NULL::interval, NULL::timestamptz,
           NULL::uuid, NULL::text, NULL::timestamptz, j.id, j.status
    FROM queue.job j WHERE j.id = ANY (p_jobs)
$$;
