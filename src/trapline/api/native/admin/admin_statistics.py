"""`/api/admin/stats`: activity of the database and the queue, for the server's administrator."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from trapline.api.principal import Administrator
from trapline.db.pool import Database
from trapline.pipeline.reports import db_statistics

router = APIRouter(prefix="/api/admin", tags=["operation"])


class Statistics(BaseModel):
    """`statements` is null where the extension pg_stat_statements is not there."""

    connections: list[dict[str, Any]]
    efficiency: list[dict[str, Any]]
    rates: list[dict[str, Any]]
    statements: list[dict[str, Any]] | None
    slow: list[dict[str, Any]]
    tables: list[dict[str, Any]]
    unused_indexes: list[dict[str, Any]]
    bloated_indexes: list[dict[str, Any]]


@router.get("/stats")
async def stats(
    request: Request,
    principal: Administrator,
    most: Annotated[int, Query(alias="limit", ge=1, le=1000)] = db_statistics.MOST,
) -> Statistics:
    """Show connections, efficiency of workers, completion rates, statements, tables and indexes."""
    del principal
    database: Database = request.app.state.database
    async with database.owner() as conn:
        statistics = await db_statistics.read_statistics(conn, now=datetime.now(UTC), most=most)
    return Statistics(**msgspec.to_builtins(statistics))
