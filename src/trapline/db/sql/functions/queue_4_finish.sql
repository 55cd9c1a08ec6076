-- Finishing: the one way in which an attempt ends, well, badly, too late or not at all.
--
-- Order: fence, (store), unique keys, then organisations, jobs, gates and lanes, each kind in id
-- order, one UPDATE a row; last the new tasks and events. Two finishing transactions therefore
-- wait for each other in one direction only.

-- Keep the verdicts whose lease still holds, or, for the sweep, those whose lease was lost.
CREATE OR REPLACE FUNCTION queue.fence(p_verdicts queue.verdict[], p_lost boolean)
RETURNS SETOF queue.ending
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    endings queue.ending[];
    gone bigint;
BEGIN
    WITH held AS MATERIALIZED (
        SELECT d.at, v.task_id, v.verdict, v.code, v.result, v.error, v.run_at,
               d.lane_id, l.job_id, l.organisation_id, l.gate_id,
               d.priority, d.attempts, d.stalls, d.slots, s.agent_id, s.claimed_at
        FROM unnest(p_verdicts) v
        CROSS JOIN LATERAL (
            SELECT s.agent_id, s.claimed_at FROM queue.lease s
            WHERE s.id = v.lease_id AND (p_lost OR s.expires_at > clock_timestamp()) OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT d.ctid AS at, d.* FROM queue.leased d
            WHERE d.lease_id = v.lease_id AND d.task_id = v.task_id OFFSET 0) d
        CROSS JOIN LATERAL (
            SELECT l.job_id, l.organisation_id, l.gate_id FROM queue.lane l
            WHERE l.id = d.lane_id OFFSET 0) l
    ),
    deleted AS (
        DELETE FROM queue.leased d WHERE d.ctid = ANY (ARRAY(SELECT h.at FROM held h)) RETURNING 1
    )
    SELECT array_agg(ROW(
               h.task_id, h.verdict, h.code, h.result, h.error, h.run_at, h.lane_id, h.job_id,
               h.organisation_id, h.gate_id, h.priority, h.attempts, h.stalls, h.slots,
               h.agent_id, h.claimed_at)::queue.ending),
           (SELECT count(*) FROM deleted)
    INTO endings, gone FROM held h;
    -- Someone else ended one of them between our look and our delete: look again.
    IF gone <> coalesce(cardinality(endings), 0) THEN
        RAISE EXCEPTION 'a lease was lost meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN QUERY SELECT * FROM unnest(endings);
END
$$;

-- A task that stalled too often, or whose caller ran it, has failed; one that may run again goes on.
CREATE OR REPLACE FUNCTION queue.judge_stalls(p_endings queue.ending[], p_most_stalls integer)
RETURNS queue.ending[]
LANGUAGE sql AS $$
    SELECT array_agg(ROW(
        e.task_id,
        CASE WHEN e.verdict = 5 AND (e.stalls >= p_most_stalls OR e.slots & 8 > 0) THEN 1
            ELSE e.verdict END,
        e.code, e.result,
        CASE WHEN e.verdict = 5 AND e.slots & 8 > 0
            THEN 'The process that asked for this and ran it has died.'
            WHEN e.verdict = 5 AND e.stalls >= p_most_stalls
            THEN format('The workers that held this task died or lost it %s times.', e.stalls + 1)
            ELSE e.error END,
        e.run_at, e.lane_id, e.job_id, e.organisation_id, e.gate_id, e.priority, e.attempts,
        e.stalls + CASE WHEN e.verdict = 5 THEN 1 ELSE 0 END,
        e.slots, e.agent_id, e.claimed_at)::queue.ending)
    FROM unnest(p_endings) e
$$;

-- Give back the slots that claims took.
CREATE OR REPLACE FUNCTION queue.free_organisations(p_endings queue.ending[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    o record;
BEGIN
    FOR o IN
        SELECT e.organisation_id AS id, count(*) FILTER (WHERE e.slots & 4 > 0) AS n,
               -- A page that was skipped, or comes again, has not been visited today.
               count(*) FILTER (WHERE e.slots & 16 > 0 AND e.verdict NOT IN (0, 1)
                   AND queue.day_of(e.claimed_at) = queue.day_of(now())) AS unvisited
        FROM unnest(p_endings) e
        WHERE e.slots & (4 | 16) > 0 GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.quota q
        SET active = q.active - o.n,
            pages = q.pages - CASE WHEN q.day = queue.day_of(now()) THEN o.unvisited ELSE 0 END
        WHERE q.organisation_id = o.id AND (o.n > 0 OR o.unvisited > 0);
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION queue.free_gates(p_endings queue.ending[], p_changes queue.gate_change[])
RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    g record;
BEGIN
    FOR g IN
        SELECT c.id, sum(c.n) AS n, max(c.gap) AS gap, max(c.pressure) AS pressure,
               max(c.not_before) AS not_before
        FROM (
            SELECT e.gate_id AS id, 1 AS n, NULL::interval AS gap, NULL::smallint AS pressure,
                   NULL::timestamptz AS not_before
            FROM unnest(p_endings) e WHERE e.slots & 1 > 0
            UNION ALL
            SELECT c.gate_id, 0, c.gap, c.pressure, c.not_before FROM unnest(p_changes) c
        ) c
        GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.gate u
        SET in_flight = u.in_flight - g.n, gap = coalesce(g.gap, u.gap),
            pressure = coalesce(g.pressure, u.pressure),
            ready_at = greatest(u.ready_at, g.not_before), updated_at = now()
        WHERE u.id = g.id;
    END LOOP;
END
$$;

-- Let the oldest tasks beyond the limit take the places that skipped ones left.
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

-- Write where each task now is: done, waiting for its retry, or ready again.
-- p_closed are jobs that have ended: their tasks do not run again.
CREATE OR REPLACE FUNCTION queue.place(p_endings queue.ending[], p_closed uuid[]) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    lanes bigint[];
    has record;
BEGIN
    SELECT bool_or(e.verdict = 1) AS failures, bool_or(e.verdict >= 4) AS returns
    INTO has FROM unnest(p_endings) e;
    INSERT INTO queue.done (
        task_id, status, code, attempts, stalls, agent_id, started_at, error, result)
    SELECT e.task_id, least(e.verdict, 3), e.code,
           e.attempts + CASE WHEN e.verdict <= 2 THEN 1 ELSE 0 END,
           e.stalls, e.agent_id, e.claimed_at, e.error, e.result::jsonb
    FROM unnest(p_endings) e
    WHERE e.verdict <= 3 OR e.job_id = ANY (p_closed);

    IF has.failures THEN
        INSERT INTO queue.dead_letter (task_id, organisation_id, job_id, kind, code, error)
        SELECT e.task_id, e.organisation_id, e.job_id, t.kind, e.code, e.error
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict = 1;
    END IF;

    IF has.returns THEN
        INSERT INTO queue.waiting (task_id, lane_id, priority, run_at, attempts, stalls, deadline)
        SELECT e.task_id, e.lane_id, e.priority, e.run_at,
               e.attempts + CASE WHEN e.verdict = 4 THEN 1 ELSE 0 END, e.stalls, t.deadline
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.deadline FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict >= 4 AND e.run_at > now() AND e.job_id <> ALL (p_closed);

        INSERT INTO queue.ready (task_id, lane_id, priority, attempts, stalls, deadline)
        SELECT e.task_id, e.lane_id, e.priority,
               e.attempts + CASE WHEN e.verdict = 4 THEN 1 ELSE 0 END, e.stalls, t.deadline
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.deadline FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict >= 4 AND (e.run_at IS NULL OR e.run_at <= now())
            AND e.job_id <> ALL (p_closed);
        lanes := ARRAY(SELECT DISTINCT e.lane_id FROM unnest(p_endings) e WHERE e.verdict >= 4 ORDER BY 1);
        PERFORM l.id FROM queue.lane l WHERE l.id = ANY (lanes) ORDER BY l.id FOR KEY SHARE;
        PERFORM queue.wake_lanes(lanes);
    END IF;
END
$$;

-- Count jobs down that go on as they are: no event, no new task, no end. Returns the tallies of the
-- others. All of them are locked then, in their order.
CREATE OR REPLACE FUNCTION queue.count_down(p_tallies queue.tally[]) RETURNS queue.tally[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    counted uuid[];
BEGIN
    IF cardinality(p_tallies) > 1 THEN
        PERFORM j.id
        FROM (SELECT * FROM unnest(p_tallies) o ORDER BY o.organisation_id, o.job_id) t
        CROSS JOIN LATERAL (
            SELECT j.id FROM queue.job j WHERE j.id = t.job_id FOR NO KEY UPDATE OFFSET 0) j;
    END IF;
    WITH moved AS (
        UPDATE queue.job j
        SET remaining = j.remaining - (t.completed + t.failed + t.cancelled),
            completed = j.completed + t.completed, failed = j.failed + t.failed,
            cancelled = j.cancelled + t.cancelled, active = j.active - t.slots
        FROM unnest(p_tallies) t
        WHERE j.id = t.job_id AND j.status IN ('running', 'paused') AND t.skipped = 0
            AND j.started_at IS NOT NULL
            AND (j.remaining > t.completed + t.failed + t.cancelled OR j.standing)
        RETURNING j.id
    )
    SELECT array_agg(m.id) INTO counted FROM moved m;
    IF counted IS NULL THEN RETURN p_tallies; END IF;
    RETURN ARRAY(SELECT t FROM unnest(p_tallies) t WHERE t.job_id <> ALL (counted));
END
$$;

-- Move the counters of the jobs, reserve their limits, end those that have nothing left, and
-- number their events. Returns each job's state after that; `over` marks the new tasks beyond a
-- limit, `closed` the jobs that had ended before.
CREATE OR REPLACE FUNCTION queue.settle_jobs(
    p_tallies queue.tally[], p_endings queue.ending[], p_tasks queue.new_task[], p_ids bigint[],
    p_events queue.new_event[], OUT over boolean[], OUT closed uuid[], OUT news uuid[]
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    tallies queue.tally[] := p_tallies;
    j record;
    job record;
    now_over boolean[];
    added record;
    admitted bigint;
    left_over bigint;
    new_status text;
    event_number bigint;
BEGIN
    over := array_fill(false, ARRAY[coalesce(cardinality(p_ids), 0)]);
    closed := '{}';
    news := '{}';
    IF cardinality(p_tasks) = 0 AND cardinality(p_events) = 0 THEN
        tallies := queue.count_down(tallies);
    END IF;
    FOR j IN
        SELECT t.job_id AS id, t.organisation_id, t.completed, t.failed, t.skipped, t.cancelled,
               t.completed + t.failed + t.skipped + t.cancelled AS ended, t.slots
        FROM unnest(tallies) t ORDER BY 2, 1
    LOOP
        SELECT q.ctid AS at, q.status, q.standing, q.kind, q.priority, q.task_limit, q.reserved,
               q.overflow, q.remaining, q.last_event, q.completed, q.failed, q.ttl, q.failed_ttl,
               q.zero_data_retention, q.started_at
        INTO job FROM queue.job q WHERE q.id = j.id FOR NO KEY UPDATE;

        IF job.status IN ('completed', 'failed', 'cancelled') THEN
            -- Too late: all that was left of the job has been counted as cancelled.
            closed := closed || j.id;
            UPDATE queue.job q
            SET completed = q.completed + j.completed, failed = q.failed + j.failed,
                skipped = q.skipped + j.skipped,
                cancelled = q.cancelled - (j.completed + j.failed + j.skipped),
                active = q.active - j.slots
            WHERE q.ctid = job.at;
            CONTINUE;
        END IF;

        added := queue.added(p_endings, p_tasks, p_ids, j.id, j.skipped,
            job.task_limit, job.reserved, job.overflow);
        IF added.over IS NOT NULL THEN
            over := ARRAY(SELECT a OR b FROM unnest(over, added.over) AS o(a, b));
        END IF;
        left_over := job.remaining - j.ended + added.admitted + added.total;
        event_number := job.last_event;
        new_status := CASE
            WHEN left_over > 0 OR job.standing THEN
                CASE job.status WHEN 'pending' THEN 'running' ELSE job.status END
            WHEN job.completed + j.completed = 0 AND job.failed + j.failed > 0 THEN 'failed'
            ELSE 'completed' END;

        IF job.status = 'pending' THEN
            event_number := event_number + 1;
            INSERT INTO queue.event (job_id, number, organisation_id, type, data) VALUES (
                j.id, event_number, j.organisation_id, 'job.started',
                jsonb_build_object('kind', job.kind));
        END IF;
        IF cardinality(p_events) > 0 THEN
            INSERT INTO queue.event (job_id, number, organisation_id, type, task_id, data)
            SELECT j.id, event_number + row_number() OVER (ORDER BY e.position), j.organisation_id,
                   e.type, e.task_id, e.data::jsonb
            FROM unnest(p_events) WITH ORDINALITY AS e(job_id, task_id, type, data, position)
            WHERE e.job_id = j.id AND (e.task_id IS NULL OR EXISTS (
                SELECT FROM unnest(p_endings) s WHERE s.task_id = e.task_id));
            event_number := event_number
                + (SELECT count(*) FROM queue.event e
                   WHERE e.job_id = j.id AND e.number > event_number);
        END IF;
        IF new_status IN ('completed', 'failed') THEN
            event_number := event_number + 1;
        END IF;

        UPDATE queue.job q
        SET status = new_status, remaining = left_over, total = q.total + added.admitted + added.total,
            completed = q.completed + j.completed, failed = q.failed + j.failed,
            skipped = q.skipped + j.skipped, cancelled = q.cancelled + j.cancelled,
            reserved = q.reserved - added.released + added.admitted + added.counted,
            overflow = q.overflow - added.admitted + added.beyond,
            found = q.found + added.linked, from_sitemap = q.from_sitemap + added.from_sitemap,
            active = q.active - j.slots, last_event = event_number,
            started_at = coalesce(q.started_at, now()),
            finished_at = CASE WHEN new_status IN ('completed', 'failed') THEN now() END,
            error = CASE WHEN new_status = 'failed' THEN queue.reason(j.id, p_endings) END,
            expires_at = CASE
                WHEN new_status NOT IN ('completed', 'failed') THEN NULL
                ELSE now() + queue.keep_for(q.zero_data_retention, new_status, q.ttl, q.failed_ttl) END
        WHERE q.ctid = job.at;

        IF new_status IN ('completed', 'failed') THEN
            PERFORM queue.tell_end(j.id);
            -- Nothing is left in them, and a later round makes new ones; but tasks beyond the
            -- limit still name theirs.
            IF job.overflow + added.beyond = added.admitted THEN
                DELETE FROM queue.lane l WHERE l.job_id = j.id;
            END IF;
        END IF;
        IF added.admitted > 0 THEN
            PERFORM queue.admit_overflow(j.id, added.admitted);
        END IF;
        IF event_number > job.last_event THEN
            news := news || j.id;
        END IF;
    END LOOP;
END
$$;

-- Why a job failed: the last of its tasks' reasons, of this batch or an earlier one.
CREATE OR REPLACE FUNCTION queue.reason(p_job uuid, p_endings queue.ending[]) RETURNS text
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
    SELECT 'No task succeeded; the last one that failed: ' || coalesce(
        (SELECT e.error FROM unnest(p_endings) e WHERE e.job_id = p_job AND e.verdict = 1
         ORDER BY e.task_id DESC LIMIT 1),
        (SELECT d.error FROM queue.dead_letter d WHERE d.job_id = p_job
         ORDER BY d.failed_at DESC, d.task_id DESC LIMIT 1),
        'without a reason')
$$;

-- How long a job is kept after its end.
CREATE OR REPLACE FUNCTION queue.keep_for(
    p_zero_data_retention boolean, p_status text, p_ttl interval, p_failed_ttl interval
) RETURNS interval
LANGUAGE sql IMMUTABLE
RETURN CASE
    WHEN p_zero_data_retention THEN least(p_ttl, interval '1 hour')
    WHEN p_status = 'failed' THEN coalesce(p_failed_ttl, p_ttl)
    ELSE p_ttl END;

-- The job's one terminal event, from its counters as they are now.
CREATE OR REPLACE FUNCTION queue.tell_end(p_job uuid) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    SELECT j.id, j.last_event, j.organisation_id, 'job.' || j.status, jsonb_build_object(
        'kind', j.kind, 'round', j.round, 'total', j.total, 'completed', j.completed,
        'failed', j.failed, 'skipped', j.skipped, 'cancelled', j.cancelled)
        || CASE WHEN j.error IS NULL THEN '{}' ELSE jsonb_build_object('error', j.error) END
    FROM queue.job j WHERE j.id = p_job
$$;

-- What one job gains: new tasks within its limit, those beyond it, and older ones from its
-- overflow that take the places of skipped ones.
CREATE OR REPLACE FUNCTION queue.added(
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
        WHERE e.job_id = p_job AND e.verdict = 2 AND t.counted;
        admitted := least(released, p_overflow);
    END IF;
    IF cardinality(p_tasks) > 0 THEN
        -- Nothing overtakes an older task that waits beyond the limit.
        over := queue.mark_overflow(p_tasks, p_ids, p_job, CASE
            WHEN p_limit IS NULL THEN 9223372036854775807
            WHEN p_overflow > admitted THEN 0
            ELSE p_limit - p_reserved + released - admitted END);
        SELECT count(*) FILTER (WHERE NOT t.over),
               count(*) FILTER (WHERE t.counted AND NOT t.over),
               count(*) FILTER (WHERE t.over),
               count(*) FILTER (WHERE t.source = 1 AND NOT t.over),
               count(*) FILTER (WHERE t.source = 2 AND NOT t.over)
        INTO total, counted, beyond, linked, from_sitemap
        FROM unnest(p_tasks, p_ids, over)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
        WHERE t.job_id = p_job AND t.id > 0;
    END IF;
    IF admitted > 0 THEN
        SELECT linked + count(*) FILTER (WHERE s.source = 1),
               from_sitemap + count(*) FILTER (WHERE s.source = 2)
        INTO linked, from_sitemap
        FROM (
            SELECT o.task_id FROM queue.overflow o WHERE o.job_id = p_job
            ORDER BY o.task_id LIMIT admitted) a
        CROSS JOIN LATERAL (SELECT t.source FROM queue.task t WHERE t.id = a.task_id OFFSET 0) s;
    END IF;
END
$$;

-- What a batch comes to for each of its jobs.
CREATE OR REPLACE FUNCTION queue.tallies(p_endings queue.ending[]) RETURNS queue.tally[]
LANGUAGE sql AS $$
    SELECT ARRAY(
        SELECT ROW(e.job_id, e.organisation_id,
                   count(*) FILTER (WHERE e.verdict = 0), count(*) FILTER (WHERE e.verdict = 1),
                   count(*) FILTER (WHERE e.verdict = 2), count(*) FILTER (WHERE e.verdict = 3),
                   count(*) FILTER (WHERE e.slots & 2 > 0))::queue.tally
        FROM unnest(p_endings) e GROUP BY e.job_id, e.organisation_id)
$$;

-- Settle what was fenced. Returns the jobs of which there is news.
CREATE OR REPLACE FUNCTION queue.settle(
    p_endings queue.ending[], p_tasks queue.new_task[], p_gates queue.new_gate[],
    p_events queue.new_event[], p_changes queue.gate_change[], p_most_stalls integer
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    endings queue.ending[] := p_endings;
    ids bigint[] := '{}';
    jobs record;
    j record;
    has record;
    bears boolean := cardinality(p_tasks) > 0;
BEGIN
    IF coalesce(cardinality(endings), 0) = 0 THEN RETURN '{}'; END IF;
    -- Handing the array on costs more than this look at it, and most batches need none of it.
    SELECT bool_or(e.verdict = 5) AS stalls, bool_or(e.slots & 1 > 0) AS gates,
           bool_or(e.slots & (4 | 16) > 0) AS organisations
    INTO has FROM unnest(endings) e;
    IF has.stalls THEN endings := queue.judge_stalls(endings, p_most_stalls); END IF;
    IF bears THEN ids := queue.take_keys(p_tasks); END IF;
    IF has.organisations THEN PERFORM queue.free_organisations(endings); END IF;
    jobs := queue.settle_jobs(queue.tallies(endings), endings, p_tasks, ids, p_events);
    IF has.gates OR cardinality(p_changes) > 0 THEN
        PERFORM queue.free_gates(endings, p_changes);
    END IF;
    IF bears THEN
        FOR j IN
            SELECT t.job_id AS id, q.organisation_id, q.priority, array_agg(DISTINCT t.gate) AS gates
            FROM unnest(p_tasks) t
            CROSS JOIN LATERAL (
                SELECT q.organisation_id, q.priority FROM queue.job q WHERE q.id = t.job_id OFFSET 0) q
            WHERE t.job_id <> ALL (jobs.closed)
            GROUP BY 1, 2, 3 ORDER BY 2, 1
        LOOP
            PERFORM queue.open_lanes(j.id, j.organisation_id, j.priority, ARRAY(
                SELECT g FROM unnest(p_gates) g WHERE g.name = ANY (j.gates) ORDER BY g.name));
        END LOOP;
        -- A job that has ended has no lanes, so its new tasks find no place and are not written.
        PERFORM queue.write_tasks(p_tasks, ids, jobs.over);
    END IF;
    PERFORM queue.place(endings, jobs.closed);
    RETURN jobs.news;
END
$$;

-- Fence and settle in one call, for work that has nothing else to store.
CREATE OR REPLACE FUNCTION queue.finish(
    p_verdicts queue.verdict[], p_lost boolean, p_most_stalls integer
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN queue.settle(
        ARRAY(SELECT f FROM queue.fence(p_verdicts, p_lost) f), '{}', '{}', '{}', '{}', p_most_stalls);
END
$$;
