-- name: ConnectionStates :many
-- How many connections to this database there are in each state.
SELECT coalesce(state, 'background')::text AS "state!", count(*) AS "connections!",
    max(extract(epoch FROM clock_timestamp() - xact_start))::double precision
        AS "oldest_transaction_seconds?"
FROM pg_stat_activity WHERE datname = current_database()
GROUP BY 1 ORDER BY 1;

-- name: TableStatistics :many
-- What was read from and written to each of our tables; partitions count as their own.
SELECT schemaname::text AS "schema!", relname::text AS "table!", seq_scan AS "scans!",
    seq_tup_read AS "scanned_rows!", coalesce(idx_scan, 0) AS "index_scans!",
    n_live_tup AS "rows!", n_dead_tup AS "dead_rows!",
    pg_total_relation_size(relid) AS "bytes!", last_autovacuum AS "vacuumed_at?"
FROM pg_stat_user_tables WHERE schemaname = ANY (sqlc.arg(schemas)::text[])
ORDER BY pg_total_relation_size(relid) DESC LIMIT sqlc.arg(most)::integer;

-- name: UnusedIndexes :many
-- Indexes that no query has read since the statistics began, and that no constraint needs.
SELECT s.schemaname::text AS "schema!", s.indexrelname::text AS "index!", s.relname::text AS "table!",
    pg_relation_size(s.indexrelid) AS "bytes!"
FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid
WHERE s.schemaname = ANY (sqlc.arg(schemas)::text[]) AND s.idx_scan = 0 AND NOT i.indisunique
ORDER BY pg_relation_size(s.indexrelid) DESC LIMIT sqlc.arg(most)::integer;

-- name: BloatedIndexes :many
-- Trees that are larger than their entries would need, by an estimate: eight bytes of overhead and
-- the width of what they hold, at nine tenths full.
SELECT * FROM (
    SELECT n.nspname::text AS "schema!", c.relname::text AS "index!", t.relname::text AS "table!",
        pg_relation_size(c.oid) AS "bytes!",
        (c.reltuples * (16 + coalesce((
            SELECT sum(s.avg_width) FROM pg_stats s
            JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = s.attname
            WHERE s.schemaname = n.nspname AND s.tablename = t.relname
                AND a.attnum = ANY (i.indkey::smallint[])
        ), 8)) / 0.9)::bigint AS "needed!"
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
    WHERE n.nspname = ANY (sqlc.arg(schemas)::text[]) AND c.relkind = 'i'
        AND pg_relation_size(c.oid) >= sqlc.arg(least_bytes)::bigint
) x
WHERE "bytes!" > 2 * "needed!"
ORDER BY "bytes!" - "needed!" DESC LIMIT sqlc.arg(most)::integer;

-- name: TopStatements :many
-- The statements that took most time together; only where pg_stat_statements is there.
SELECT query AS "query!", calls AS "calls!", total_exec_time AS "total_ms!",
    mean_exec_time AS "mean_ms!", max_exec_time AS "max_ms!", rows AS "rows!"
FROM observability.pg_stat_statements_top_total_time LIMIT sqlc.arg(most)::integer;

-- name: SlowNow :many
-- Statements that have been running for longer than a while.
SELECT pid AS "pid!", extract(epoch FROM clock_timestamp() - query_start)::double precision AS "seconds!",
    coalesce(wait_event, '')::text AS "waits_for!", query AS "query!"
FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
    AND query_start < clock_timestamp() - sqlc.arg(longer)::interval
ORDER BY query_start LIMIT sqlc.arg(most)::integer;
