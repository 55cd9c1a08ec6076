-- Inline tasks: run in the process of their caller, leased as they are written, never queued. They take
-- the same slots of gate and organisation as any other task.

-- Take the slots of one task. Callers are served in the order of their calls: begin_at is the gate's
-- next free moment, and it is reserved for the caller. While all slots are taken, the next one that is
-- released is kept for a moment for the caller's next try. Organisations before gates, as in
-- queue_4_finish.sql.
CREATE OR REPLACE FUNCTION queue.take_slots(
    p_organisation uuid, p_gate queue.new_gate, p_latest timestamptz,
    OUT gate_id bigint, OUT slots smallint, OUT begin_at timestamptz, OUT blocked_by text
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    at timestamptz := clock_timestamp();
    kept timestamptz := at + interval '300 milliseconds';
    gate queue.gate;
    quota queue.quota;
    pause interval;
    most integer;
    pages_most bigint;
BEGIN
    slots := queue.slot_inline();
    SELECT o.max_concurrency, o.max_pages_per_day INTO most, pages_most
    FROM tenancy.organisation o WHERE o.id = p_organisation;
    IF most IS NOT NULL OR pages_most IS NOT NULL THEN
        INSERT INTO queue.quota (organisation_id) VALUES (p_organisation) ON CONFLICT DO NOTHING;
        SELECT * INTO quota FROM queue.quota q WHERE q.organisation_id = p_organisation
        FOR NO KEY UPDATE;
        IF quota.day <> queue.day_of(at) THEN quota.pages := 0; END IF;
        IF quota.pages >= pages_most THEN
            blocked_by := 'pages';
            RETURN;
        ELSIF quota.active >= most THEN
            UPDATE queue.quota q SET kept_until = kept WHERE q.organisation_id = p_organisation;
            blocked_by := 'organisation';
            RETURN;
        END IF;
        IF most IS NOT NULL THEN slots := slots | queue.slot_organisation(); END IF;
        IF pages_most IS NOT NULL THEN slots := slots | queue.slot_pages(); END IF;
    END IF;

    SELECT * INTO gate FROM queue.gate g WHERE g.name = p_gate.name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM queue.open_gates(ARRAY[p_gate]);
        SELECT * INTO gate FROM queue.gate g WHERE g.name = p_gate.name FOR NO KEY UPDATE;
    END IF;
    pause := greatest(gate.floor, coalesce(p_gate.lane_gap, gate.gap));
    -- A host that asks for a delay gets one request after the other, whatever the job allows.
    most := CASE WHEN gate.floor > interval '0' THEN 1 ELSE coalesce(p_gate.lane_bound, gate.bound) END;
    begin_at := greatest(at, gate.ready_at);
    IF begin_at > p_latest THEN
        blocked_by := 'gap';
    ELSIF gate.in_flight >= most THEN
        blocked_by := 'gate';
        UPDATE queue.gate g SET kept_until = kept WHERE g.id = gate.id;
    END IF;
    IF blocked_by IS NOT NULL THEN RETURN; END IF;
    gate_id := gate.id;
    IF most IS NOT NULL THEN slots := slots | queue.slot_gate(); END IF;
    UPDATE queue.gate g
    SET in_flight = g.in_flight + (most IS NOT NULL)::integer,
        ready_at = CASE WHEN pause > interval '0' THEN begin_at + pause ELSE g.ready_at END
    WHERE g.id = gate.id;
    IF slots & (queue.slot_organisation() | queue.slot_pages()) > 0 THEN
        UPDATE queue.quota q
        SET active = q.active + (slots & queue.slot_organisation() > 0)::integer,
            day = CASE WHEN slots & queue.slot_pages() > 0 THEN queue.day_of(at) ELSE q.day END,
            pages = CASE WHEN slots & queue.slot_pages() > 0 THEN quota.pages + 1 ELSE q.pages END
        WHERE q.organisation_id = p_organisation;
    END IF;
END
$$;

-- Take slots and write a job with its one task, leased; or return what blocks it. p_again: the answer
-- of an earlier call was lost, so return what that call wrote. p_unless: a reason of the caller's own
-- that blocks it.
CREATE OR REPLACE FUNCTION queue.begin_inline_task(
    p_job queue.new_direct, p_task queue.new_task, p_gate queue.new_gate, p_latest timestamptz,
    p_agent bigint, p_lease_time interval, p_again boolean, p_unless text,
    OUT gate_id bigint, OUT slots smallint, OUT begin_at timestamptz, OUT blocked_by text,
    OUT task_id bigint, OUT lane_id bigint, OUT lease_id bigint
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    -- If the server crashes before this is on its disk, the finish finds no lease and says so. A
    -- finish is on the disk together with all that was written before it.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF p_unless IS NOT NULL THEN
        blocked_by := p_unless;
        RETURN;
    END IF;
    IF p_again THEN
        SELECT l.gate_id, d.slots, greatest(clock_timestamp(), g.ready_at), d.task_id, d.lane_id, d.lease_id
        INTO gate_id, slots, begin_at, task_id, lane_id, lease_id
        FROM queue.lane l
        JOIN queue.gate g ON g.id = l.gate_id
        JOIN queue.task t ON t.job_id = l.job_id
        JOIN queue.lease s ON s.agent_id = p_agent
        JOIN queue.leased d ON d.lease_id = s.id AND d.task_id = t.id
        WHERE l.job_id = p_job.id;
        IF FOUND THEN RETURN; END IF;
    END IF;
    SELECT p.* INTO gate_id, slots, begin_at, blocked_by
    FROM queue.take_slots(p_job.organisation_id, p_gate, p_latest) p;
    IF blocked_by IS NOT NULL THEN RETURN; END IF;

    INSERT INTO queue.job (
        id, organisation_id, member_id, kind, priority, options, metadata, trace_id,
        zero_data_retention, ttl, failed_ttl, total, remaining, reserved, status, started_at,
        last_event)
    VALUES (
        p_job.id, p_job.organisation_id, p_job.member_id, p_job.kind, p_job.priority,
        p_job.options::jsonb, p_job.metadata::jsonb, p_job.trace_id, p_job.zero_data_retention,
        p_job.ttl, p_job.failed_ttl, 1, 1, p_task.counted::integer, 'running', now(), 1);
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    VALUES (p_job.id, 1, p_job.organisation_id, 'job.started', jsonb_build_object('kind', p_job.kind));
    -- Not awake: workers have nothing to claim in it.
    INSERT INTO queue.lane (organisation_id, job_id, gate_id, priority, awake)
    VALUES (p_job.organisation_id, p_job.id, begin_inline_task.gate_id, p_task.priority, false)
    RETURNING id INTO lane_id;
    INSERT INTO queue.task (
        organisation_id, job_id, lane_id, gate_id, kind, payload, priority, max_attempts, timeout,
        deadline, counted, source, trace_id)
    VALUES (
        p_job.organisation_id, p_job.id, begin_inline_task.lane_id, begin_inline_task.gate_id, p_task.kind,
        p_task.payload::jsonb, p_task.priority, p_task.max_attempts, p_task.timeout,
        p_task.deadline, p_task.counted, p_task.source, p_task.trace_id)
    RETURNING id INTO task_id;
    INSERT INTO queue.lease (agent_id, expires_at)
    VALUES (p_agent, clock_timestamp() + p_lease_time) RETURNING id INTO lease_id;
    INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls, slots)
    VALUES (begin_inline_task.lease_id, begin_inline_task.task_id, begin_inline_task.lane_id, p_task.priority, 0, 0,
        begin_inline_task.slots);
END
$$;
