-- trapline: needs pg_stat_statements
-- The 50 statements of this database that took most time. Only its owner may look.

CREATE OR REPLACE VIEW observability.pg_stat_statements_top_total_time
WITH (security_invoker = true) AS
SELECT
    s.queryid,
    s.query,
    s.calls,
    s.total_exec_time,
    s.mean_exec_time,
    s.min_exec_time,
    s.max_exec_time,
    s.stddev_exec_time,
    s.rows,
    s.shared_blks_hit,
    s.shared_blks_read,
    s.temp_blks_written
FROM pg_stat_statements s
WHERE s.dbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
ORDER BY s.total_exec_time DESC
LIMIT 50;
