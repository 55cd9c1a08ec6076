"""`/api/admin/stats`: what the database and the queue are busy with, for the server's administrator."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from trapline.api.access import Administrator
from trapline.db import pool
from trapline.db.pool import Database
from trapline.pipeline import figures

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
    who: Administrator,
    most: Annotated[int, Query(alias="limit", ge=1, le=1000)] = figures.MOST,
) -> Statistics:
    """Show connections, efficiency of workers, completion rates, statements, tables and indexes."""
    del who
    database: Database = request.app.state.database
    async with pool.owner(database.dsn, database.settings) as conn:
        found = await figures.gather(conn, now=datetime.now(UTC), most=most)
    return Statistics(**msgspec.to_builtins(found))
