-- Tasks that run in the process of their own caller: leased where they are written, they stand in
-- no line. But they take the same places at the gate and in the organisation's limit as any other.

-- Take one place. Callers are let through in the order in which they ask: begin_at is the gate's
-- next free moment, and it is the caller's from now on. While all places are taken, the next one
-- that comes free is kept for a moment, for whoever asks again. Organisations before gates, as in
-- queue_4_finish.sql.
CREATE OR REPLACE FUNCTION queue.take_place(
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
    slots := 8;
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
        IF most IS NOT NULL THEN slots := slots | 4; END IF;
        IF pages_most IS NOT NULL THEN slots := slots | 16; END IF;
    END IF;

    PERFORM queue.open_gates(ARRAY[p_gate]);
    SELECT * INTO gate FROM queue.gate g WHERE g.name = p_gate.name FOR NO KEY UPDATE;
    pause := greatest(gate.floor, coalesce(p_gate.lane_gap, gate.gap));
    most := coalesce(p_gate.lane_bound, gate.bound);
    begin_at := greatest(at, gate.ready_at);
    IF begin_at > p_latest THEN
        blocked_by := 'gap';
    ELSIF gate.in_flight >= most THEN
        blocked_by := 'gate';
        UPDATE queue.gate g SET kept_until = kept WHERE g.id = gate.id;
    END IF;
    IF blocked_by IS NOT NULL THEN RETURN; END IF;
    gate_id := gate.id;
    IF most IS NOT NULL THEN slots := slots | 1; END IF;
    UPDATE queue.gate g
    SET in_flight = g.in_flight + (most IS NOT NULL)::integer,
        ready_at = CASE WHEN pause > interval '0' THEN begin_at + pause ELSE g.ready_at END
    WHERE g.id = gate.id;
    IF slots & (4 | 16) > 0 THEN
        UPDATE queue.quota q
        SET active = q.active + (slots & 4 > 0)::integer,
            day = CASE WHEN slots & 16 > 0 THEN queue.day_of(at) ELSE q.day END,
            pages = CASE WHEN slots & 16 > 0 THEN quota.pages + 1 ELSE q.pages END
        WHERE q.organisation_id = p_organisation;
    END IF;
END
$$;

-- Write the one task of a new job, leased, at a place that was taken.
CREATE OR REPLACE FUNCTION queue.write_direct(
    p_organisation uuid, p_task queue.new_task, p_gate_id bigint, p_slots smallint,
    p_agent bigint, p_lease_time interval,
    OUT task_id bigint, OUT lane_id bigint, OUT lease_id bigint
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    -- Not awake: there is nothing in it for others.
    INSERT INTO queue.lane (organisation_id, job_id, gate_id, priority, awake)
    VALUES (p_organisation, p_task.job_id, p_gate_id, p_task.priority, false)
    RETURNING id INTO lane_id;
    INSERT INTO queue.task (
        organisation_id, job_id, lane_id, gate_id, kind, payload, priority, max_attempts, timeout,
        deadline, counted, source, trace_id)
    VALUES (
        p_organisation, p_task.job_id, write_direct.lane_id, p_gate_id, p_task.kind,
        p_task.payload::jsonb, p_task.priority, p_task.max_attempts, p_task.timeout,
        p_task.deadline, p_task.counted, p_task.source, p_task.trace_id)
    RETURNING id INTO task_id;
    INSERT INTO queue.lease (agent_id, expires_at)
    VALUES (p_agent, clock_timestamp() + p_lease_time) RETURNING id INTO lease_id;
    INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls, slots)
    VALUES (write_direct.lease_id, write_direct.task_id, write_direct.lane_id, p_task.priority, 0, 0,
        p_slots);
    UPDATE queue.job j
    SET total = 1, remaining = 1, reserved = p_task.counted::integer, status = 'running',
        started_at = now(), last_event = 1
    WHERE j.id = p_task.job_id;
    PERFORM queue.tell(p_task.job_id, 'job.started', jsonb_build_object('kind', j.kind))
    FROM queue.job j WHERE j.id = p_task.job_id;
END
$$;
