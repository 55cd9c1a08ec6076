-- Gates and lanes: created on first use.

-- Create missing gates. Tenants may not write gates, which all organisations share, except through this.
CREATE OR REPLACE FUNCTION queue.open_gates(p_gates queue.new_gate[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO queue.gate (name, gap, bound)
    SELECT DISTINCT ON (g.name) g.name, coalesce(g.gap, interval '0'), g.bound
    FROM unnest(p_gates) g
    WHERE NOT EXISTS (SELECT FROM queue.gate e WHERE e.name = g.name)
    ORDER BY g.name
    ON CONFLICT (name) DO NOTHING
$$;

-- Create a job's missing lanes at these gates, and wake all of them. The caller has locked the job's
-- row: new lanes of a paused job stay closed until it is resumed.
CREATE OR REPLACE FUNCTION queue.open_lanes(
    p_job uuid, p_organisation uuid, p_priority smallint, p_gates queue.new_gate[]
) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lanes bigint[];
BEGIN
    PERFORM queue.open_gates(p_gates);
    INSERT INTO queue.lane (organisation_id, job_id, gate_id, priority, gap, bound, open)
    SELECT p_organisation, p_job, g.id, p_priority, w.lane_gap, w.lane_bound,
           (SELECT j.status <> 'paused' FROM queue.job j WHERE j.id = p_job)
    FROM unnest(p_gates) w
    CROSS JOIN LATERAL (SELECT g.id FROM queue.gate g WHERE g.name = w.name OFFSET 0) g
    WHERE NOT EXISTS (
        SELECT FROM queue.lane l WHERE l.job_id = p_job AND l.gate_id = g.id)
    ORDER BY g.id
    ON CONFLICT (job_id, gate_id) DO NOTHING;
    -- The lock keeps a lane awake until our commit: maintenance locks it FOR UPDATE before it looks
    -- for tasks and puts the lane to sleep, and it could not see ours yet.
    lanes := ARRAY(
        SELECT l.id
        FROM unnest(p_gates) w
        CROSS JOIN LATERAL (SELECT g.id FROM queue.gate g WHERE g.name = w.name OFFSET 0) g
        CROSS JOIN LATERAL (
            SELECT l.id FROM queue.lane l WHERE l.job_id = p_job AND l.gate_id = g.id
            FOR KEY SHARE OFFSET 0) l);
    PERFORM queue.wake_lanes(lanes);
END
$$;

-- Let workers claim from these lanes again. The caller has locked them FOR KEY SHARE.
CREATE OR REPLACE FUNCTION queue.wake_lanes(p_lanes bigint[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    UPDATE queue.lane SET awake = true WHERE id = ANY (p_lanes) AND NOT awake
$$;
