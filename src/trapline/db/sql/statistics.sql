-- name: ConnectionStates :many
-- The number of connections to this database, by state.
SELECT coalesce(state, 'background')::text AS "state!", count(*) AS "connections!",
    max(extract(epoch FROM clock_timestamp() - xact_start))::double precision
        AS "oldest_transaction_seconds?"
FROM pg_stat_activity WHERE datname = current_database()
GROUP BY 1 ORDER BY 1;

-- name: TableStatistics :many
-- Scans, rows and sizes of our tables; partitions count on their own.
SELECT schemaname::text AS "schema!", relname::text AS "table!", seq_scan AS "scans!",
    seq_tup_read AS "scanned_rows!", coalesce(idx_scan, 0) AS "index_scans!",
    n_live_tup AS "rows!", n_dead_tup AS "dead_rows!",
    pg_total_relation_size(relid) AS "bytes!", last_autovacuum AS "vacuumed_at?"
FROM pg_stat_user_tables WHERE schemaname = ANY (sqlc.arg(schemas)::text[])
ORDER BY pg_total_relation_size(relid) DESC LIMIT sqlc.arg(most)::integer;

-- name: UnusedIndexes :many
-- Indexes that no query has used since the statistics began and no constraint needs.
SELECT s.schemaname::text AS "schema!", s.indexrelname::text AS "index!", s.relname::text AS "table!",
    pg_relation_size(s.indexrelid) AS "bytes!"
FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid
WHERE s.schemaname = ANY (sqlc.arg(schemas)::text[]) AND s.idx_scan = 0 AND NOT i.indisunique
ORDER BY pg_relation_size(s.indexrelid) DESC LIMIT sqlc.arg(most)::integer;

-- name: BloatedIndexes :many
-- B-trees much larger than their entries need, by an estimate: overhead plus the width of the columns,
-- at a fill factor of 0.9.
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
-- The statements with the largest total time; needs pg_stat_statements.
SELECT query AS "query!", calls AS "calls!", total_exec_time AS "total_ms!",
    mean_exec_time AS "mean_ms!", max_exec_time AS "max_ms!", rows AS "rows!"
FROM observability.pg_stat_statements_top_total_time LIMIT sqlc.arg(most)::integer;

-- name: RunningStatements :many
-- Statements that have been running for longer than an interval.
SELECT pid AS "pid!", extract(epoch FROM clock_timestamp() - query_start)::double precision AS "seconds!",
    coalesce(wait_event, '')::text AS "waits_for!", query AS "query!"
FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
    AND query_start < clock_timestamp() - sqlc.arg(longer)::interval
ORDER BY query_start LIMIT sqlc.arg(most)::integer;

-- name: DatabaseSize :one
-- The size of this database on disk, and the version of its server.
SELECT pg_database_size(current_database()) AS "bytes!",
    current_setting('server_version')::text AS "version!";
