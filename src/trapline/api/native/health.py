"""`/health` for load balancers and people, `/metrics` for Prometheus."""

from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from trapline.db.pool import Database
from trapline.ephemeral import redis
from trapline.errors import DatabaseUnavailable
from trapline.settings import Settings

router = APIRouter()


class Health(BaseModel):
    """Whether the parts that Trapline stands on answer."""

    status: Literal["healthy", "unhealthy"]
    timestamp: datetime
    checks: dict[str, str]

    model_config = {
        "json_schema_extra": {
            "example": {
                "status": "healthy",
                "timestamp": "2026-11-15T10:00:00Z",
                "checks": {"database": "connected"},
            }
        }
    }


@router.get("/health", tags=["operation"], responses={503: {"model": Health}})
async def health(request: Request, response: Response) -> Health:
    """Check the database (and Redis, when one is configured)."""
    settings: Settings = request.app.state.settings
    checks = {"database": await _database(request.app.state.database)}
    if settings.redis_url is not None:
        answered = await redis.ping(settings.redis_url.get_secret_value())
        checks["redis"] = "connected" if answered else "disconnected"
    healthy = all(state == "connected" for state in checks.values())
    if not healthy:
        response.status_code = 503
    return Health(
        status="healthy" if healthy else "unhealthy",
        timestamp=datetime.now(UTC).replace(microsecond=0),
        checks=checks,
    )


@router.get("/metrics", tags=["operation"], response_class=Response)
async def metrics() -> Response:
    """Answer with all counters and histograms in Prometheus' text format."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _database(database: Database) -> str:
    try:
        async with database.system_tx() as conn:
            await conn.execute("SELECT 1")
    except DatabaseUnavailable:
        return "disconnected"
    return "connected"
