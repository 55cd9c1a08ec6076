-- The claim: rows move from ready to leased, and nothing is updated in place.
--
-- Every lookup is a LATERAL subquery with OFFSET 0, which forces one index probe a row. These tables
-- are empty one moment and full the next: a planner that is free to choose joins by their size at the
-- last ANALYZE, and a batch of n costs n².

-- Lease the requested tasks of some lanes, all under one lease. Lanes of cancelled and paused jobs are
-- not open.
CREATE OR REPLACE FUNCTION queue.lease_tasks(p_lease bigint, p_wants queue.want[], p_slots smallint)
RETURNS SETOF queue.claimed
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    WITH picked AS MATERIALIZED (
        SELECT r.at FROM unnest(p_wants) w
        CROSS JOIN LATERAL (SELECT l.id FROM queue.lane l WHERE l.id = w.lane_id AND l.open OFFSET 0) l
        CROSS JOIN LATERAL (
            SELECT r.ctid AS at FROM queue.ready r
            WHERE r.lane_id = l.id AND (r.priority, r.turn) > (w.after_priority, w.after_turn)
                AND r.priority <= w.to_priority
            ORDER BY r.priority, r.turn LIMIT w.take FOR UPDATE SKIP LOCKED) r
    ),
    moved AS MATERIALIZED (
        DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(SELECT at FROM picked)) RETURNING r.*
    ),
    leased AS (
        INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls, slots)
        SELECT p_lease, m.task_id, m.lane_id, m.priority, m.attempts, m.stalls,
               -- Only counted tasks use the daily quota of pages.
               CASE WHEN p_slots & queue.slot_pages() = 0
                   OR (SELECT t.counted FROM queue.task t WHERE t.id = m.task_id)
               THEN p_slots ELSE p_slots - queue.slot_pages() END
        FROM moved m
    )
    SELECT m.task_id, m.lane_id, p_lease, m.priority, m.turn, m.attempts, m.stalls,
           t.kind, t.payload, t.max_attempts, t.timeout, t.deadline, t.trace_id,
           NULL::text, NULL::timestamptz, NULL::uuid, NULL::text
    FROM moved m CROSS JOIN LATERAL (
        SELECT t.kind, t.payload::text AS payload, t.max_attempts, t.timeout, t.deadline,
               t.trace_id
        FROM queue.task t WHERE t.id = m.task_id OFFSET 0) t;
END
$$;

-- The row for a lane from which nothing can be leased now, with the reason and until when.
CREATE OR REPLACE FUNCTION queue.blocked_lane(p_lane bigint, p_by text, p_until timestamptz)
RETURNS queue.claimed
LANGUAGE sql IMMUTABLE AS $$
    SELECT ROW(NULL, p_lane, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
               p_by, p_until, NULL, NULL)::queue.claimed
$$;

-- The day of the daily quota, in UTC.
CREATE OR REPLACE FUNCTION queue.day_of(p_at timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE
RETURN (p_at AT TIME ZONE 'UTC')::date;

-- How many of a lane's next tasks fit into the rest of the daily quota. Uncounted tasks always fit,
-- but none overtakes a page before it. The tasks stay locked, so that exactly these are leased.
CREATE OR REPLACE FUNCTION queue.fit_pages(
    p_lane bigint, p_want queue.want, p_most integer, p_pages bigint,
    OUT looked bigint, OUT take integer, OUT pages bigint
)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH upcoming AS MATERIALIZED (
        SELECT r.priority, r.turn, r.task_id FROM queue.ready r
        WHERE r.lane_id = p_lane AND (r.priority, r.turn) > (p_want.after_priority, p_want.after_turn)
            AND r.priority <= p_want.to_priority
        ORDER BY r.priority, r.turn LIMIT p_most FOR UPDATE SKIP LOCKED
    ),
    counted AS (
        SELECT t.counted, count(*) FILTER (WHERE t.counted) OVER (ORDER BY u.priority, u.turn) AS nth
        FROM upcoming u
        CROSS JOIN LATERAL (SELECT t.counted FROM queue.task t WHERE t.id = u.task_id OFFSET 0) t
    )
    SELECT count(*), (count(*) FILTER (WHERE c.nth <= p_pages OR c.nth = 0))::integer,
           count(*) FILTER (WHERE c.counted AND c.nth <= p_pages)
    FROM counted c
$$;

-- Lease from one lane as many tasks as its gate, its job and its organisation allow. Rows that another
-- worker has locked are skipped, never waited for: so a claim can follow a finish in one transaction
-- without a deadlock.
CREATE OR REPLACE FUNCTION queue.lease_limited(p_lease bigint, p_want queue.want)
RETURNS SETOF queue.claimed
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lane queue.lane;
    gate queue.gate;
    at timestamptz := clock_timestamp();
    soon timestamptz := at + interval '20 milliseconds';
    later timestamptz := at + interval '1 second';
    room integer := p_want.take;
    slots smallint := 0;
    pause interval;
    most integer;
    job_most integer;
    job_active integer;
    organisation_most integer;
    pages_most bigint;
    quota queue.quota;
    looked bigint;
    fitting integer;
    new_pages bigint := 0;
    moved integer;
BEGIN
    SELECT * INTO lane FROM queue.lane l WHERE l.id = p_want.lane_id AND l.open;
    IF NOT FOUND THEN RETURN; END IF;

    SELECT * INTO gate FROM queue.gate g WHERE g.id = lane.gate_id FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN NEXT queue.blocked_lane(lane.id, 'busy', soon); RETURN; END IF;
    IF gate.ready_at > at THEN
        RETURN NEXT queue.blocked_lane(lane.id, 'gap', gate.ready_at); RETURN;
    END IF;
    pause := greatest(gate.floor, coalesce(lane.gap, gate.gap));
    -- A host that asks for a delay gets one request after the other, whatever the job allows.
    most := CASE WHEN gate.floor > interval '0' THEN 1 ELSE coalesce(lane.bound, gate.bound) END;
    IF pause > interval '0' THEN room := least(room, 1); END IF;
    IF most IS NOT NULL THEN
        slots := slots | queue.slot_gate();
        room := least(room, most - gate.in_flight - (gate.kept_until > at)::integer);
        IF room <= 0 THEN RETURN NEXT queue.blocked_lane(lane.id, 'gate', later); RETURN; END IF;
    END IF;

    SELECT j.max_active INTO job_most FROM queue.job j WHERE j.id = lane.job_id;
    IF job_most IS NOT NULL THEN
        SELECT j.active INTO job_active FROM queue.job j WHERE j.id = lane.job_id
        FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN RETURN NEXT queue.blocked_lane(lane.id, 'busy', soon); RETURN; END IF;
        slots := slots | queue.slot_job();
        room := least(room, job_most - job_active);
        IF room <= 0 THEN RETURN NEXT queue.blocked_lane(lane.id, 'job', later); RETURN; END IF;
    END IF;

    SELECT o.max_concurrency, o.max_pages_per_day INTO organisation_most, pages_most
    FROM tenancy.organisation o WHERE o.id = lane.organisation_id;
    IF organisation_most IS NOT NULL OR pages_most IS NOT NULL THEN
        INSERT INTO queue.quota (organisation_id) VALUES (lane.organisation_id)
        ON CONFLICT DO NOTHING;
        SELECT * INTO quota FROM queue.quota q
        WHERE q.organisation_id = lane.organisation_id FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN RETURN NEXT queue.blocked_lane(lane.id, 'busy', soon); RETURN; END IF;
    END IF;
    IF organisation_most IS NOT NULL THEN
        slots := slots | queue.slot_organisation();
        room := least(room, organisation_most - quota.active - (quota.kept_until > at)::integer);
        IF room <= 0 THEN RETURN NEXT queue.blocked_lane(lane.id, 'organisation', later); RETURN; END IF;
    END IF;
    IF pages_most IS NOT NULL THEN
        slots := slots | queue.slot_pages();
        SELECT f.looked, f.take, f.pages INTO looked, fitting, new_pages FROM queue.fit_pages(
            lane.id, p_want, room,
            pages_most - CASE WHEN quota.day = queue.day_of(at) THEN quota.pages ELSE 0 END) f;
        IF looked = 0 THEN RETURN; END IF;
        IF fitting = 0 THEN
            RETURN NEXT queue.blocked_lane(lane.id, 'pages', at + interval '10 seconds'); RETURN;
        END IF;
        room := fitting;
    END IF;

    p_want.take := room;
    RETURN QUERY SELECT * FROM queue.lease_tasks(p_lease, ARRAY[p_want], slots);
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved = 0 THEN RETURN; END IF;
    IF slots & queue.slot_gate() > 0 OR pause > interval '0' THEN
        UPDATE queue.gate g
        SET in_flight = g.in_flight + CASE WHEN slots & queue.slot_gate() > 0 THEN moved ELSE 0 END,
            ready_at = CASE WHEN pause > interval '0' THEN at + pause ELSE g.ready_at END
        WHERE g.id = gate.id;
        IF pause > interval '0' THEN RETURN NEXT queue.blocked_lane(lane.id, 'gap', at + pause); END IF;
    END IF;
    IF slots & queue.slot_job() > 0 THEN
        UPDATE queue.job j SET active = j.active + moved WHERE j.id = lane.job_id;
    END IF;
    IF slots & (queue.slot_organisation() | queue.slot_pages()) > 0 THEN
        UPDATE queue.quota q
        SET active = q.active + CASE WHEN slots & queue.slot_organisation() > 0 THEN moved ELSE 0 END,
            day = CASE WHEN slots & queue.slot_pages() > 0 THEN queue.day_of(at) ELSE q.day END,
            pages = CASE
                WHEN slots & queue.slot_pages() = 0 THEN q.pages
                WHEN q.day = queue.day_of(at) THEN q.pages + new_pages
                ELSE new_pages END
        WHERE q.organisation_id = lane.organisation_id;
    END IF;
END
$$;

-- Start the jobs whose first task is claimed. One that is locked is left to the next claim.
CREATE OR REPLACE FUNCTION queue.start_jobs(p_jobs uuid[]) RETURNS SETOF queue.claimed
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH idle AS MATERIALIZED (
        SELECT j.id FROM queue.job j WHERE j.id = ANY (p_jobs) AND j.status = 'pending'
        ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
    ),
    started AS (
        UPDATE queue.job j
        SET status = 'running', started_at = now(), last_event = j.last_event + 1
        WHERE j.id = ANY (ARRAY(SELECT i.id FROM idle i))
        RETURNING j.id, j.organisation_id, j.last_event, j.kind
    ),
    told AS (
        INSERT INTO queue.event (job_id, number, organisation_id, type, data)
        SELECT s.id, s.last_event, s.organisation_id, 'job.started', jsonb_build_object('kind', s.kind)
        FROM started s
    )
    SELECT NULL::bigint, NULL::bigint, NULL::bigint, NULL::smallint, NULL::bigint, NULL::smallint,
           NULL::smallint, NULL::text, NULL::text, NULL::smallint, NULL::interval, NULL::timestamptz,
           NULL::uuid, NULL::text, NULL::timestamptz, s.id, 'running'
    FROM started s
$$;
