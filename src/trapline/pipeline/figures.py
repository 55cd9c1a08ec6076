"""What the database and the queue are busy with, for whoever runs them.

In: a connection of the database's owner, who alone sees the statements of others.
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
    SlowNowRow,
    TableStatisticsRow,
    TopStatementsRow,
    UnusedIndexesRow,
)
from trapline.queue.sql import efficiency
from trapline.queue.sql.efficiency import EfficiencySinceRow, RatesSinceRow

MOST: Final = 50
_SMALLEST: Final = 1_000_000
_SLOW: Final = timedelta(seconds=5)
_STATEMENTS: Final = "observability.pg_stat_statements_top_total_time"


@dataclass(frozen=True, slots=True)
class Figures:
    """`statements` is None where pg_stat_statements is not there."""

    connections: list[ConnectionStatesRow]
    efficiency: list[EfficiencySinceRow]
    """Of the tasks of the last hour, by kind."""
    rates: list[RatesSinceRow]
    """Jobs of the last day, by hour."""
    statements: list[TopStatementsRow] | None
    slow: list[SlowNowRow]
    tables: list[TableStatisticsRow]
    unused_indexes: list[UnusedIndexesRow]
    bloated_indexes: list[BloatedIndexesRow]


async def gather(conn: Connection, *, now: datetime, most: int = MOST) -> Figures:
    """Read all figures; none of the queries reads a table of rows."""
    ours = list(schemas.SCHEMAS)
    known = await conn.fetchval("SELECT to_regclass($1) IS NOT NULL", _STATEMENTS)
    return Figures(
        connections=await server.connection_states(conn),
        efficiency=await efficiency.efficiency_since(conn, since=now - timedelta(hours=1)),
        rates=await efficiency.rates_since(conn, since=now - timedelta(hours=24)),
        statements=await server.top_statements(conn, most=most) if known else None,
        slow=await server.slow_now(conn, longer=_SLOW, most=most),
        tables=await server.table_statistics(conn, schemas=ours, most=most),
        unused_indexes=await server.unused_indexes(conn, schemas=ours, most=most),
        bloated_indexes=await server.bloated_indexes(
            conn, schemas=ours, least_bytes=_SMALLEST, most=most
        ),
    )
