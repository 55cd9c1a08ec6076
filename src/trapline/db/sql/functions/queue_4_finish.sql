-- The finish: every attempt ends here, whatever its outcome.
--
-- Order: fence, (store), unique keys, then organisations, jobs, gates and lanes, each kind in id
-- order, one UPDATE a row; last the new tasks and events. Two finishing transactions therefore
-- wait for each other in one direction only.

-- The fence: delete the leased rows of these attempts and return those whose lease still holds, or,
-- for the sweep (p_lost), also those whose lease has expired.
CREATE OR REPLACE FUNCTION queue.fence(p_verdicts queue.verdict[], p_lost boolean)
RETURNS SETOF queue.ending
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    fenced queue.ending[];
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
    INTO fenced, gone FROM held h;
    -- Another transaction ended one of them between our read and our delete: retry.
    IF gone <> coalesce(cardinality(fenced), 0) THEN
        RAISE EXCEPTION 'a lease was lost meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN QUERY SELECT * FROM unnest(fenced);
END
$$;

-- Fail the tasks that have stalled too often, and the inline ones: their caller has died.
CREATE OR REPLACE FUNCTION queue.fail_stalled(p_endings queue.ending[], p_most_stalls integer)
RETURNS queue.ending[]
LANGUAGE sql AS $$
    SELECT array_agg(ROW(
        e.task_id,
        CASE WHEN e.verdict = queue.outcome_stalled()
                AND (e.stalls >= p_most_stalls OR e.slots & queue.slot_inline() > 0)
            THEN queue.outcome_failed()
            ELSE e.verdict END,
        e.code, e.result,
        CASE WHEN e.verdict = queue.outcome_stalled() AND e.slots & queue.slot_inline() > 0
            THEN 'The process that asked for this and ran it has died.'
            WHEN e.verdict = queue.outcome_stalled() AND e.stalls >= p_most_stalls
            THEN format('The workers that held this task died or lost it %s times.', e.stalls + 1)
            ELSE e.error END,
        e.run_at, e.lane_id, e.job_id, e.organisation_id, e.gate_id, e.priority, e.attempts,
        e.stalls + CASE WHEN e.verdict = queue.outcome_stalled() THEN 1 ELSE 0 END,
        e.slots, e.agent_id, e.claimed_at)::queue.ending)
    FROM unnest(p_endings) e
$$;

-- Release the slots of organisations, and the pages of the daily quota that were not visited.
CREATE OR REPLACE FUNCTION queue.free_organisations(p_endings queue.ending[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    o record;
BEGIN
    FOR o IN
        SELECT e.organisation_id AS id, count(*) FILTER (WHERE e.slots & queue.slot_organisation() > 0) AS n,
               -- A page that was skipped or is retried has not been visited today.
               count(*) FILTER (WHERE e.slots & queue.slot_pages() > 0
                   AND e.verdict NOT IN (queue.outcome_completed(), queue.outcome_failed())
                   AND queue.day_of(e.claimed_at) = queue.day_of(now())) AS unvisited
        FROM unnest(p_endings) e
        WHERE e.slots & (queue.slot_organisation() | queue.slot_pages()) > 0 GROUP BY 1 ORDER BY 1
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
            FROM unnest(p_endings) e WHERE e.slots & queue.slot_gate() > 0
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

-- Move each task to its next state: done, waiting for its retry, or ready again.
-- Tasks of p_closed, the jobs that have ended, do not run again.
CREATE OR REPLACE FUNCTION queue.write_outcomes(p_endings queue.ending[], p_closed uuid[]) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    lanes bigint[];
    has record;
BEGIN
    SELECT bool_or(e.verdict = queue.outcome_failed()) AS failures,
           bool_or(e.verdict >= queue.outcome_retry()) AS returns
    INTO has FROM unnest(p_endings) e;
    INSERT INTO queue.done (
        task_id, status, code, attempts, stalls, agent_id, started_at, error, result)
    SELECT e.task_id, least(e.verdict, queue.outcome_cancelled()), e.code,
           e.attempts + CASE WHEN e.verdict <= queue.outcome_skipped() THEN 1 ELSE 0 END,
           e.stalls, e.agent_id, e.claimed_at, e.error, e.result::jsonb
    FROM unnest(p_endings) e
    WHERE e.verdict <= queue.outcome_cancelled() OR e.job_id = ANY (p_closed);

    IF has.failures THEN
        INSERT INTO queue.dead_letter (task_id, organisation_id, job_id, kind, code, error)
        SELECT e.task_id, e.organisation_id, e.job_id, t.kind, e.code, e.error
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict = queue.outcome_failed();
    END IF;

    IF has.returns THEN
        INSERT INTO queue.waiting (task_id, lane_id, priority, run_at, attempts, stalls, deadline)
        SELECT e.task_id, e.lane_id, e.priority, e.run_at,
               e.attempts + CASE WHEN e.verdict = queue.outcome_retry() THEN 1 ELSE 0 END,
               e.stalls, t.deadline
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.deadline FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict >= queue.outcome_retry() AND e.run_at > now() AND e.job_id <> ALL (p_closed);

        INSERT INTO queue.ready (task_id, lane_id, priority, attempts, stalls, deadline)
        SELECT e.task_id, e.lane_id, e.priority,
               e.attempts + CASE WHEN e.verdict = queue.outcome_retry() THEN 1 ELSE 0 END,
               e.stalls, t.deadline
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.deadline FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict >= queue.outcome_retry() AND (e.run_at IS NULL OR e.run_at <= now())
            AND e.job_id <> ALL (p_closed);
        lanes := ARRAY(
            SELECT DISTINCT e.lane_id FROM unnest(p_endings) e
            WHERE e.verdict >= queue.outcome_retry() ORDER BY 1);
        PERFORM l.id FROM queue.lane l WHERE l.id = ANY (lanes) ORDER BY l.id FOR KEY SHARE;
        PERFORM queue.wake_lanes(lanes);
    END IF;
END
$$;

-- Update the counters of jobs that only count down: no event, no new task, no end. Returns the tallies
-- of the others. All jobs are locked then, in id order.
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

-- Update the counters of jobs, reserve their limits, end those that have no task left, and number
-- their events. `over` marks the new tasks beyond a limit, `closed` lists the jobs that had ended
-- before, `news` those with new events.
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
               q.overflow, q.remaining, q.last_event, q.completed, q.failed, q.skipped, q.ttl,
               q.failed_ttl,
               q.zero_data_retention, q.started_at
        INTO job FROM queue.job q WHERE q.id = j.id FOR NO KEY UPDATE;

        IF job.status IN ('completed', 'failed', 'cancelled') THEN
            -- The job has ended: its open tasks have been counted as cancelled.
            closed := closed || j.id;
            UPDATE queue.job q
            SET completed = q.completed + j.completed, failed = q.failed + j.failed,
                skipped = q.skipped + j.skipped,
                cancelled = q.cancelled - (j.completed + j.failed + j.skipped),
                active = q.active - j.slots
            WHERE q.ctid = job.at;
            CONTINUE;
        END IF;

        added := queue.count_new_tasks(p_endings, p_tasks, p_ids, j.id, j.skipped,
            job.task_limit, job.reserved, job.overflow);
        IF added.over IS NOT NULL THEN
            over := ARRAY(SELECT a OR b FROM unnest(over, added.over) AS o(a, b));
        END IF;
        left_over := job.remaining - j.ended + added.admitted + added.total;
        event_number := job.last_event;
        new_status := CASE
            WHEN left_over > 0 OR job.standing THEN
                CASE job.status WHEN 'pending' THEN 'running' ELSE job.status END
            WHEN queue.is_fruitless(
                j.id, p_endings, job.completed + j.completed, job.failed + j.failed,
                job.skipped + j.skipped, job.reserved - added.released + added.counted)
                THEN 'failed'
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
            error = CASE WHEN new_status = 'failed' THEN queue.failure_reason(j.id, p_endings) END,
            expires_at = CASE
                WHEN new_status NOT IN ('completed', 'failed') THEN NULL
                ELSE now() + queue.retention(q.zero_data_retention, new_status, q.ttl, q.failed_ttl) END
        WHERE q.ctid = job.at;

        IF new_status IN ('completed', 'failed') THEN
            PERFORM queue.add_terminal_event(j.id);
            -- The lanes are empty, and a later round creates new ones; but tasks in the overflow
            -- still refer to theirs.
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

-- Whether a job without open tasks has failed: no task that counts in its limit was completed, such as a
-- page of a crawl, and some failed or were skipped. The counters decide nearly always: p_reserved is the
-- number of counted tasks that completed or failed.
CREATE OR REPLACE FUNCTION queue.is_fruitless(
    p_job uuid, p_endings queue.ending[], p_completed bigint, p_failed bigint, p_skipped bigint,
    p_reserved bigint
) RETURNS boolean
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF p_failed = 0 AND p_skipped = 0 OR p_failed < p_reserved THEN RETURN false; END IF;
    IF p_completed = 0 THEN RETURN true; END IF;
    RETURN EXISTS (SELECT FROM queue.task t WHERE t.job_id = p_job AND t.counted)
        AND NOT EXISTS (
            SELECT FROM queue.task t JOIN queue.done d ON d.task_id = t.id
            WHERE t.job_id = p_job AND t.counted AND d.status = queue.outcome_completed())
        AND NOT EXISTS (
            SELECT FROM unnest(p_endings) e JOIN queue.task t ON t.id = e.task_id
            WHERE e.job_id = p_job AND t.counted AND e.verdict = queue.outcome_completed());
END
$$;

-- Why a job failed: the reason of its last failed task, of this batch or an earlier one; if none failed,
-- that of its last skipped task.
CREATE OR REPLACE FUNCTION queue.failure_reason(p_job uuid, p_endings queue.ending[]) RETURNS text
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
    SELECT coalesce(
        'No task succeeded; the last one that failed: ' || coalesce(
            (SELECT e.error FROM unnest(p_endings) e
             WHERE e.job_id = p_job AND e.verdict = queue.outcome_failed()
             ORDER BY e.task_id DESC LIMIT 1),
            (SELECT d.error FROM queue.dead_letter d WHERE d.job_id = p_job
             ORDER BY d.failed_at DESC, d.task_id DESC LIMIT 1)),
        'No task succeeded; the last one was skipped: ' || coalesce(
            (SELECT e.error FROM unnest(p_endings) e
             WHERE e.job_id = p_job AND e.verdict = queue.outcome_skipped()
             ORDER BY e.task_id DESC LIMIT 1),
            (SELECT d.error FROM queue.task t JOIN queue.done d ON d.task_id = t.id
             WHERE t.job_id = p_job AND d.status = queue.outcome_skipped()
             ORDER BY t.id DESC LIMIT 1)),
        'No task succeeded.')
$$;

-- The time to live of an ended job.
CREATE OR REPLACE FUNCTION queue.retention(
    p_zero_data_retention boolean, p_status text, p_ttl interval, p_failed_ttl interval
) RETURNS interval
LANGUAGE sql IMMUTABLE
RETURN CASE
    WHEN p_zero_data_retention THEN least(p_ttl, interval '1 hour')
    WHEN p_status = 'failed' THEN coalesce(p_failed_ttl, p_ttl)
    ELSE p_ttl END;

-- The job's one terminal event, from its counters as they are now.
CREATE OR REPLACE FUNCTION queue.add_terminal_event(p_job uuid) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    SELECT j.id, j.last_event, j.organisation_id, 'job.' || j.status, jsonb_build_object(
        'kind', j.kind, 'round', j.round, 'total', j.total, 'completed', j.completed,
        'failed', j.failed, 'skipped', j.skipped, 'cancelled', j.cancelled)
        || CASE WHEN j.error IS NULL THEN '{}' ELSE jsonb_build_object('error', j.error) END
    FROM queue.job j WHERE j.id = p_job
$$;

-- Count the outcomes of a batch for each of its jobs.
CREATE OR REPLACE FUNCTION queue.tallies(p_endings queue.ending[]) RETURNS queue.tally[]
LANGUAGE sql AS $$
    SELECT ARRAY(
        SELECT ROW(e.job_id, e.organisation_id,
                   count(*) FILTER (WHERE e.verdict = queue.outcome_completed()),
                   count(*) FILTER (WHERE e.verdict = queue.outcome_failed()),
                   count(*) FILTER (WHERE e.verdict = queue.outcome_skipped()),
                   count(*) FILTER (WHERE e.verdict = queue.outcome_cancelled()),
                   count(*) FILTER (WHERE e.slots & queue.slot_job() > 0))::queue.tally
        FROM unnest(p_endings) e GROUP BY e.job_id, e.organisation_id)
$$;

-- Settle fenced attempts: counters, slots, gates, new tasks, events. Returns the jobs with new events.
CREATE OR REPLACE FUNCTION queue.settle(
    p_endings queue.ending[], p_tasks queue.new_task[], p_gates queue.new_gate[],
    p_events queue.new_event[], p_changes queue.gate_change[], p_most_stalls integer
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    fenced queue.ending[] := p_endings;
    ids bigint[] := '{}';
    jobs record;
    j record;
    has record;
    bears boolean := cardinality(p_tasks) > 0;
BEGIN
    IF coalesce(cardinality(fenced), 0) = 0 THEN RETURN '{}'; END IF;
    -- Passing the array on costs more than this scan, and most batches need none of these functions.
    SELECT bool_or(e.verdict = queue.outcome_stalled()) AS stalls,
           bool_or(e.slots & queue.slot_gate() > 0) AS gates,
           bool_or(e.slots & (queue.slot_organisation() | queue.slot_pages()) > 0) AS organisations
    INTO has FROM unnest(fenced) e;
    IF has.stalls THEN fenced := queue.fail_stalled(fenced, p_most_stalls); END IF;
    IF bears THEN ids := queue.take_keys(p_tasks); END IF;
    IF has.organisations THEN PERFORM queue.free_organisations(fenced); END IF;
    jobs := queue.settle_jobs(queue.tallies(fenced), fenced, p_tasks, ids, p_events);
    IF has.gates OR cardinality(p_changes) > 0 THEN
        PERFORM queue.free_gates(fenced, p_changes);
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
        -- A job that has ended has no lanes, so its new tasks are not written.
        PERFORM queue.write_tasks(p_tasks, ids, jobs.over);
        IF EXISTS (SELECT FROM unnest(ids) u(id) WHERE u.id < 0) THEN
            PERFORM queue.raise_priorities(p_tasks, ids);
        END IF;
    END IF;
    PERFORM queue.write_outcomes(fenced, jobs.closed);
    RETURN jobs.news;
END
$$;

-- Fence and settle in one call, for attempts without results to store.
CREATE OR REPLACE FUNCTION queue.finish(
    p_verdicts queue.verdict[], p_lost boolean, p_most_stalls integer
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN queue.settle(
        ARRAY(SELECT f FROM queue.fence(p_verdicts, p_lost) f), '{}', '{}', '{}', '{}', p_most_stalls);
END
$$;
