"""`/admin/*`: only for the holder of TRAPLINE_ADMIN_KEY; absent without that setting."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from trapline.api.principal import Administrator
from trapline.db import pool, schemas
from trapline.db.pool import Database

router = APIRouter(prefix="/admin", tags=["operation"])


class ResetDone(BaseModel):
    """What a reset did."""

    message: str


@router.post("/reset-db")
async def reset_db(request: Request, principal: Administrator) -> ResetDone:
    """Destroy all data and recreate the schema. There is no way back."""
    del principal
    database: Database = request.app.state.database
    async with database.owner() as conn:
        await schemas.drop_all(conn)
        await pool.prepare(conn)
    return ResetDone(message="All data is gone; the schema is new.")
