"""Health checks at the paths that Firecrawl's tools use."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from trapline.api.firecrawl.errors import FirecrawlRoute
from trapline.db.pool import Database

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"])


@router.get("/e2e-test", response_class=PlainTextResponse)
async def e2e_test() -> str:
    """Answer OK."""
    return "OK"


@router.get("/v1/health/liveness")
async def liveness() -> dict[str, str]:
    """Answer while the process runs."""
    return {"status": "ok"}


@router.get("/v1/health/readiness")
async def readiness(request: Request) -> dict[str, str]:
    """Answer while the database answers too."""
    database: Database = request.app.state.database
    async with database.system_tx() as conn:
        await conn.execute("SELECT 1")
    return {"status": "ok"}
