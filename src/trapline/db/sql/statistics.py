"""Typed functions of statistics.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class ConnectionStatesRow(Struct, frozen=True, gc=False):
    state: str
    connections: int
    oldest_transaction_seconds: float | None


class TableStatisticsRow(Struct, frozen=True, gc=False):
    schema: str
    table: str
    scans: int
    scanned_rows: int
    index_scans: int
    rows: int
    dead_rows: int
    bytes: int
    vacuumed_at: datetime | None


class UnusedIndexesRow(Struct, frozen=True, gc=False):
    schema: str
    index: str
    table: str
    bytes: int


class BloatedIndexesRow(Struct, frozen=True, gc=False):
    schema: str
    index: str
    table: str
    bytes: int
    needed: int


class TopStatementsRow(Struct, frozen=True, gc=False):
    query: str
    calls: int
    total_ms: float
    mean_ms: float
    max_ms: float
    rows: int


class RunningStatementsRow(Struct, frozen=True, gc=False):
    pid: int
    seconds: float
    waits_for: str
    query: str


class DatabaseSizeRow(Struct, frozen=True, gc=False):
    bytes: int
    version: str


_CONNECTION_STATES: Final = """
-- name: ConnectionStates
SELECT coalesce(state, 'background')::text AS "state!", count(*) AS "connections!",
    max(extract(epoch FROM clock_timestamp() - xact_start))::double precision
        AS "oldest_transaction_seconds?"
FROM pg_stat_activity WHERE datname = current_database()
GROUP BY 1 ORDER BY 1
"""


async def connection_states(conn: Connection) -> list[ConnectionStatesRow]:
    """The number of connections to this database, by state."""
    return [ConnectionStatesRow(*row) for row in await conn.fetch(_CONNECTION_STATES)]


_TABLE_STATISTICS: Final = """
-- name: TableStatistics
SELECT schemaname::text AS "schema!", relname::text AS "table!", seq_scan AS "scans!",
    seq_tup_read AS "scanned_rows!", coalesce(idx_scan, 0) AS "index_scans!",
    n_live_tup AS "rows!", n_dead_tup AS "dead_rows!",
    pg_total_relation_size(relid) AS "bytes!", last_autovacuum AS "vacuumed_at?"
FROM pg_stat_user_tables WHERE schemaname = ANY ($1::text[])
ORDER BY pg_total_relation_size(relid) DESC LIMIT $2::integer
"""


async def table_statistics(
    conn: Connection, *, schemas: Sequence[str], most: int
) -> list[TableStatisticsRow]:
    """Scans, rows and sizes of our tables; partitions count on their own."""
    return [TableStatisticsRow(*row) for row in await conn.fetch(_TABLE_STATISTICS, schemas, most)]


_UNUSED_INDEXES: Final = """
-- name: UnusedIndexes
SELECT s.schemaname::text AS "schema!", s.indexrelname::text AS "index!", s.relname::text AS "table!",
    pg_relation_size(s.indexrelid) AS "bytes!"
FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid
WHERE s.schemaname = ANY ($1::text[]) AND s.idx_scan = 0 AND NOT i.indisunique
ORDER BY pg_relation_size(s.indexrelid) DESC LIMIT $2::integer
"""


async def unused_indexes(
    conn: Connection, *, schemas: Sequence[str], most: int
) -> list[UnusedIndexesRow]:
    """Indexes that no query has used since the statistics began and no constraint needs."""
    return [UnusedIndexesRow(*row) for row in await conn.fetch(_UNUSED_INDEXES, schemas, most)]


_BLOATED_INDEXES: Final = """
-- name: BloatedIndexes
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
    WHERE n.nspname = ANY ($1::text[]) AND c.relkind = 'i'
        AND pg_relation_size(c.oid) >= $2::bigint
) x
WHERE "bytes!" > 2 * "needed!"
ORDER BY "bytes!" - "needed!" DESC LIMIT $3::integer
"""


async def bloated_indexes(
    conn: Connection, *, schemas: Sequence[str], least_bytes: int, most: int
) -> list[BloatedIndexesRow]:
    """B-trees much larger than their entries need, by an estimate: overhead plus the width of the columns, at a fill factor of 0.9."""
    return [
        BloatedIndexesRow(*row)
        for row in await conn.fetch(_BLOATED_INDEXES, schemas, least_bytes, most)
    ]


_TOP_STATEMENTS: Final = """
-- name: TopStatements
SELECT query AS "query!", calls AS "calls!", total_exec_time AS "total_ms!",
    mean_exec_time AS "mean_ms!", max_exec_time AS "max_ms!", rows AS "rows!"
FROM observability.pg_stat_statements_top_total_time LIMIT $1::integer
"""


async def top_statements(conn: Connection, *, most: int) -> list[TopStatementsRow]:
    """The statements with the largest total time; needs pg_stat_statements."""
    return [TopStatementsRow(*row) for row in await conn.fetch(_TOP_STATEMENTS, most)]


_RUNNING_STATEMENTS: Final = """
-- name: RunningStatements
SELECT pid AS "pid!", extract(epoch FROM clock_timestamp() - query_start)::double precision AS "seconds!",
    coalesce(wait_event, '')::text AS "waits_for!", query AS "query!"
FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
    AND query_start < clock_timestamp() - $1::interval
ORDER BY query_start LIMIT $2::integer
"""


async def running_statements(
    conn: Connection, *, longer: timedelta, most: int
) -> list[RunningStatementsRow]:
    """Statements that have been running for longer than an interval."""
    return [
        RunningStatementsRow(*row) for row in await conn.fetch(_RUNNING_STATEMENTS, longer, most)
    ]


_DATABASE_SIZE: Final = """
-- name: DatabaseSize
SELECT pg_database_size(current_database()) AS "bytes!",
    current_setting('server_version')::text AS "version!"
"""


async def database_size(conn: Connection) -> DatabaseSizeRow:
    """The size of this database on disk, and the version of its server."""
    (row,) = await conn.fetch(_DATABASE_SIZE)
    return DatabaseSizeRow(*row)
