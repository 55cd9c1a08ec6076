"""`/admin/*`: what only the holder of TRAPLINE_ADMIN_KEY may do. Without that setting it is absent."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from trapline.api.access import Administrator
from trapline.db import pool, schemas
from trapline.db.pool import Database

router = APIRouter(prefix="/admin", tags=["operation"])


class ResetDone(BaseModel):
    """What a reset did."""

    message: str


@router.post("/reset-db")
async def reset_db(request: Request, who: Administrator) -> ResetDone:
    """Destroy all data and build the schema anew. There is no way back."""
    del who
    database: Database = request.app.state.database
    async with pool.owner(database.dsn, database.settings) as conn:
        await schemas.drop_all(conn)
        await pool.prepare(conn)
    return ResetDone(message="All data is gone; the schema is new.")
