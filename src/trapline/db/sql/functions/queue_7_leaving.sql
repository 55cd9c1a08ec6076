-- Give back the places of tasks at their gates before they have ended. Whose lease is lost has
-- none to give back. Leased rows before gates, as in queue_4_finish.sql.
CREATE OR REPLACE FUNCTION queue.leave_gates(p_leases bigint[], p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lanes bigint[];
    g record;
BEGIN
    -- If a crash loses this, the places are given back with the tasks.
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH held AS MATERIALIZED (
        SELECT d.at FROM unnest(p_leases, p_tasks) AS h(lease_id, task_id)
        CROSS JOIN LATERAL (
            SELECT d.ctid AS at FROM queue.leased d
            WHERE d.lease_id = h.lease_id AND d.task_id = h.task_id AND d.slots & 1 > 0
            FOR UPDATE OFFSET 0) d
    ),
    gone AS (
        UPDATE queue.leased d SET slots = d.slots & ~1
        WHERE d.ctid = ANY (ARRAY(SELECT h.at FROM held h)) RETURNING d.lane_id
    )
    SELECT array_agg(lane_id) INTO lanes FROM gone;
    FOR g IN
        SELECT l.gate_id AS id, count(*) AS n FROM unnest(lanes) AS n(id)
        CROSS JOIN LATERAL (SELECT l.gate_id FROM queue.lane l WHERE l.id = n.id OFFSET 0) l
        GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.gate u SET in_flight = u.in_flight - g.n WHERE u.id = g.id;
    END LOOP;
END
$$;
