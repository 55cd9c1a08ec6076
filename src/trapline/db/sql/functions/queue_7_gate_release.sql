-- Release the gate slots of tasks before they end. A task whose lease is lost has none. A gate opens no
-- sooner than `p_not_before` of its task says. Leased rows before gates, as in queue_4_finish.sql.
CREATE OR REPLACE FUNCTION queue.release_gates(
    p_leases bigint[], p_tasks bigint[], p_not_before timestamptz[]
) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lanes bigint[];
    pauses timestamptz[];
    g record;
BEGIN
    -- If a crash loses this, the slots are released when the tasks end.
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH held AS MATERIALIZED (
        SELECT d.at, d.lane_id, h.not_before
        FROM unnest(p_leases, p_tasks, p_not_before) AS h(lease_id, task_id, not_before)
        CROSS JOIN LATERAL (
            SELECT d.ctid AS at, d.lane_id FROM queue.leased d
            WHERE d.lease_id = h.lease_id AND d.task_id = h.task_id AND d.slots & queue.slot_gate() > 0
            FOR UPDATE OFFSET 0) d
    ),
    gone AS (
        UPDATE queue.leased d SET slots = d.slots & ~queue.slot_gate()
        WHERE d.ctid = ANY (ARRAY(SELECT h.at FROM held h))
    )
    SELECT array_agg(h.lane_id), array_agg(h.not_before) INTO lanes, pauses FROM held h;
    FOR g IN
        SELECT l.gate_id AS id, count(*) AS n, max(n.not_before) AS not_before
        FROM unnest(lanes, pauses) AS n(id, not_before)
        CROSS JOIN LATERAL (SELECT l.gate_id FROM queue.lane l WHERE l.id = n.id OFFSET 0) l
        GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.gate u
        SET in_flight = u.in_flight - g.n, ready_at = greatest(u.ready_at, g.not_before)
        WHERE u.id = g.id;
    END LOOP;
END
$$;
