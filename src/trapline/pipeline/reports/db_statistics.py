"""Statistics of the database and the queue for an operator.

In: a connection of the database's owner, the only role that sees the statements of others.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from trapline.db import schemas
from trapline.db.connection import Connection
from trapline.db.sql import statistics as server
from trapline.db.sql.statistics import (
    BloatedIndexesRow,
    ConnectionStatesRow,
    RunningStatementsRow,
    TableStatisticsRow,
    TopStatementsRow,
    UnusedIndexesRow,
)
from trapline.queue.sql import efficiency
from trapline.queue.sql.efficiency import EfficiencySinceRow, RatesSinceRow

MOST: Final = 50
_MIN_INDEX_BYTES: Final = 1_000_000
_SLOW: Final = timedelta(seconds=5)
_STATEMENTS: Final = "observability.pg_stat_statements_top_total_time"


@dataclass(frozen=True, slots=True)
class DbStatistics:
    """`statements` is None without the extension pg_stat_statements."""

    connections: list[ConnectionStatesRow]
    efficiency: list[EfficiencySinceRow]
    """Of the tasks of the last hour, by kind."""
    rates: list[RatesSinceRow]
    """Jobs of the last day, by hour."""
    statements: list[TopStatementsRow] | None
    slow: list[RunningStatementsRow]
    tables: list[TableStatisticsRow]
    unused_indexes: list[UnusedIndexesRow]
    bloated_indexes: list[BloatedIndexesRow]


async def read_statistics(conn: Connection, *, now: datetime, most: int = MOST) -> DbStatistics:
    """Read all statistics; no query scans a table of ours."""
    ours = list(schemas.SCHEMAS)
    has_statements = await conn.fetchval("SELECT to_regclass($1) IS NOT NULL", _STATEMENTS)
    return DbStatistics(
        connections=await server.connection_states(conn),
        efficiency=await efficiency.efficiency_since(conn, since=now - timedelta(hours=1)),
        rates=await efficiency.rates_since(conn, since=now - timedelta(hours=24)),
        statements=await server.top_statements(conn, most=most) if has_statements else None,
        slow=await server.running_statements(conn, longer=_SLOW, most=most),
        tables=await server.table_statistics(conn, schemas=ours, most=most),
        unused_indexes=await server.unused_indexes(conn, schemas=ours, most=most),
        bloated_indexes=await server.bloated_indexes(
            conn, schemas=ours, least_bytes=_MIN_INDEX_BYTES, most=most
        ),
    )
